/** The registry of group kinds: one line each. */
import type { GroupKind } from "#core/group.ts";
import { select } from "./select.ts";

export const GROUP_KINDS: readonly GroupKind[] = [
  select, //
];
