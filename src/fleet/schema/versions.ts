/** The schema by versions. What has been published is never changed: a change is a new version at the end. */
import { FUNCTIONS } from "./functions.ts";
import { LEASES } from "./leases.ts";
import { MEMBERSHIP } from "./membership.ts";
import { NODES } from "./nodes.ts";
import { REMARKS } from "./remarks.ts";
import { DECIDING, RIGHTS } from "./rights.ts";
import { SLOTS } from "./slots.ts";
import { TABLES } from "./tables.ts";
import { TRAFFIC } from "./traffic.ts";

/** Version n is the n-th, counted from 1. */
export const VERSIONS: readonly string[] = [
  [TABLES, DECIDING, FUNCTIONS, NODES, RIGHTS].join("\n"),
  MEMBERSHIP,
  TRAFFIC,
  LEASES,
  SLOTS,
  REMARKS,
];
