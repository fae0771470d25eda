import { PARTS as POLICY_PARTS } from "#governance/store.ts";
import { PARTS as JOURNAL_PARTS } from "#journal/parts.ts";
import { PARTS as USER_PARTS } from "#users/records.ts";

/** Tables of each store that this version knows. */
export const STORE_PARTS = { users: USER_PARTS, journal: JOURNAL_PARTS, policies: POLICY_PARTS } as const;
