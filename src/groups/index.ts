/** The registry of group kinds: one line each. */
import type { GroupKind } from "#core/group.ts";
import { fallback } from "./fallback.ts";
import { loadBalance } from "./load-balance.ts";
import { relay } from "./relay.ts";
import { select } from "./select.ts";
import { urlTest } from "./url-test.ts";

export const GROUP_KINDS: readonly GroupKind[] = [select, urlTest, fallback, loadBalance, relay];
