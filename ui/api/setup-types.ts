/** Listeners and nodes of the file as `/api/svc/setup` answers. All text in it is untrusted. */
import type { Remark } from "./config-types.ts";

export interface SetupListener {
  readonly name: string;
  readonly type: string;
  readonly hosts: readonly string[];
  readonly ports: readonly number[];
  /** An item of `listeners`. */
  readonly listed: boolean;
  readonly managed: boolean;
}

export interface SetupNode {
  readonly name: string;
  readonly type: string;
  readonly server: string;
  readonly inert: string | null;
}

export interface Setup {
  readonly listeners: readonly SetupListener[];
  readonly nodes: readonly SetupNode[];
  readonly groups: readonly { readonly name: string; readonly members: readonly string[] }[];
  readonly svc: { readonly public_base_url: string; readonly managed: readonly string[] } | null;
  /** There is an `acme` block. */
  readonly acme: boolean;
  readonly managed_types: readonly string[];
}

export interface Target {
  readonly host: string;
  readonly port: number;
  readonly server_name: string;
  readonly faults: readonly string[];
  readonly doubts: readonly string[];
  readonly round_trip_ms: number | null;
}

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

export type Edit =
  | { readonly op: "add" | "set"; readonly path: readonly (string | number)[]; readonly value: Json }
  | { readonly op: "remove"; readonly path: readonly (string | number)[] };

/** Sensitive: kept while it is looked at. */
export interface Preview {
  readonly before: string;
  readonly text: string;
  readonly hash: string;
  readonly remarks: readonly Remark[];
}
