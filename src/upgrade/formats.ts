/** What this program reads and writes of state, and what of it another version would not. */
import { PARTS as POLICY_PARTS } from "#governance/store.ts";
import { PARTS as JOURNAL_PARTS } from "#journal/parts.ts";
import { SCHEMA_VERSION } from "#store/kv.ts";
import { PARTS as USER_PARTS } from "#users/records.ts";
import type { Formats } from "./messages.ts";

const schema = Number(SCHEMA_VERSION);

export const FORMATS: Formats = {
  "managed users": { schema, parts: [...USER_PARTS] },
  "tokens, audit log and events": { schema, parts: [...JOURNAL_PARTS] },
  "traffic control": { schema, parts: [...POLICY_PARTS] },
};

/** What is in stores of `written` and a program that knows `known` could not read, a line each. */
export function unreadable(written: Formats, known: Formats): readonly string[] {
  return Object.entries(written).flatMap(([store, { schema: form, parts }]) => {
    const other = known[store];
    if (other === undefined) return [`${store}: all of it`];
    if (other.schema !== form) return [`${store}: all of it (form ${form} of the file, not ${other.schema})`];
    const missing = parts.filter((part) => !other.parts.includes(part));
    return missing.length === 0 ? [] : [`${store}: ${missing.join(", ")}`];
  });
}
