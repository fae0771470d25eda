/** The tables of a journal. */
export const HEADS = "heads";
export const TOKENS = "tokens";
export const AUDIT = "audit";
export const EVENTS = "events";
/** What was reported last of a subject, so that it is reported when it changes, also across a crash. */
export const MARKS = "marks";
export const DELIVERIES = "deliveries";
export const PARTS = [HEADS, TOKENS, AUDIT, EVENTS, MARKS, DELIVERIES] as const;

const DIGITS = 16;

/** Keys that sort as their numbers do. */
export function keyOf(seq: number): string {
  return String(seq).padStart(DIGITS, "0");
}
