import type { z } from "zod";
import type { Delays } from "./delays.ts";
import type { Dialer, Group, Outbound } from "./outbound.ts";

/** Where choices that outlive a reload and a restart are kept: the selected member of a group. */
export interface Choices {
  selected(group: string): string | null;
  select(group: string, member: string): void;
  unselect(group: string): void;
}

/** Inclusive ranges of HTTP statuses; null: every status. */
export type StatusRanges = readonly (readonly [from: number, to: number])[] | null;

/** How the members of a group are tested. */
export interface TestPlan {
  readonly url: string;
  readonly timeoutMs: number;
  readonly expected: StatusRanges;
}

/** Runs delay tests and keeps what they measured. */
export interface Health {
  readonly delays: Delays;
  /** Records the result; answers with whole milliseconds. Throws `DialError`. */
  test(member: Outbound, plan: TestPlan, signal: AbortSignal): Promise<number>;
}

export interface GroupSettings extends TestPlan {
  /** 0: no periodic test. */
  readonly intervalSeconds: number;
  /** No periodic test while the group is not used. */
  readonly lazy: boolean;
  /** Failed dials within `timeoutMs` that start a test at once. */
  readonly maxFailedTimes: number;
  readonly disableUdp: boolean;
  /** Of `select`: the member until one is selected; null: the first. */
  readonly defaultSelected: string | null;
}

/** Nodes that reach their servers through other nodes. */
export interface Lines {
  /** True for DIRECT, REJECT and the like, which no file describes. */
  isBuiltIn(node: Outbound): boolean;
  /** What a node reaches its server through by its own `dialer-proxy`; null: nothing. */
  dialerOf(node: Outbound): Outbound | null;
  /** The last of these nodes, each of them reaching its server through the one before it. Nothing is dialled yet. */
  line(nodes: readonly Outbound[]): Dialer;
}

/** What testing the members of a group takes. */
export interface TestEnv {
  readonly name: string;
  /** In order, never empty; providers may change what comes back. */
  members(): readonly Outbound[];
  readonly settings: GroupSettings;
  readonly health: Health;
}

export interface GroupEnv extends TestEnv {
  /** How often `proxies` has a member, by name. */
  readonly timesListed: ReadonlyMap<string, number>;
  readonly choices: Choices;
  readonly lines: Lines;
}

/** One `type` of `proxy-groups`. Common fields (name, proxies, use, filter, hidden, icon …) are read by the configuration. */
export interface GroupKind {
  /** As in files: `select`. */
  readonly type: string;
  /** As in the API: `Selector`. */
  readonly apiType: string;
  readonly schema: z.ZodObject;
  open(options: never, env: GroupEnv): Promise<Group>;
}

/** A group whose member a person can choose (all kinds but load-balance and relay). */
export interface SelectableGroup extends Group {
  /** Makes it the choice, or pins it. False where no such member exists. */
  select(member: string): boolean;
  /** The pinned member; absent for kinds whose choice is not a pin (Selector). */
  readonly pinned?: string | null;
  unpin?(): void;
}

export function isSelectable(outbound: Outbound): outbound is SelectableGroup {
  return "select" in outbound;
}

/** Ties a schema to the function that opens it, so that the options are typed by the schema. */
export function groupKind<S extends z.ZodObject>(
  names: { readonly type: string; readonly apiType: string },
  schema: S,
  open: (options: z.output<S>, env: GroupEnv) => Promise<Group>,
): GroupKind {
  return { ...names, schema, open };
}
