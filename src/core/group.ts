import type { z } from "zod";
import type { Log } from "./log.ts";
import type { Group, Outbound } from "./outbound.ts";

/** Where choices that outlive a reload and a restart are kept: the selected member of a group. */
export interface Choices {
  selected(group: string): string | null;
  select(group: string, member: string): void;
}

export interface GroupEnv {
  readonly name: string;
  /** In order, never empty. */
  readonly members: readonly Outbound[];
  readonly choices: Choices;
  readonly log: Log;
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

/** A group whose member a person can choose (all kinds but load-balance). */
export interface SelectableGroup extends Group {
  /** False where no such member exists. */
  select(member: string): boolean;
}

export function isSelectable(outbound: Outbound): outbound is SelectableGroup {
  return "select" in outbound;
}
