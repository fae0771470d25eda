/** The schema by versions. What has been published is never changed: a change is a new version at the end. */
import { BOUNDS } from "./bounds.ts";
import { FUNCTIONS } from "./functions.ts";
import { LEASES } from "./leases.ts";
import { MEMBERSHIP } from "./membership.ts";
import { NODES } from "./nodes.ts";
import { PARTITIONS } from "./partitions.ts";
import { REMARKS } from "./remarks.ts";
import { REMOVAL } from "./removal.ts";
import { DECIDING, RIGHTS } from "./rights.ts";
import { SEEN } from "./seen.ts";
import { SLOTS } from "./slots.ts";
import { SUMS } from "./sums.ts";
import { TABLES } from "./tables.ts";
import { TRAFFIC } from "./traffic.ts";
import { TURNS } from "./turns.ts";

/** The oldest that this program works with: those behind it changed no call. So nodes may be updated before their database. */
export const OLDEST = 6;

/** Version n is the n-th, counted from 1. */
export const VERSIONS: readonly string[] = [
  [TABLES, DECIDING, FUNCTIONS, NODES, RIGHTS].join("\n"),
  MEMBERSHIP,
  TRAFFIC,
  LEASES,
  SLOTS,
  REMARKS,
  [PARTITIONS, TURNS, SUMS, BOUNDS, SEEN, REMOVAL].join("\n"),
];
