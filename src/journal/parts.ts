/** The tables of a journal. */
export const HEADS = "heads";
export const TOKENS = "tokens";
export const AUDIT = "audit";
export const PARTS = [HEADS, TOKENS, AUDIT] as const;

const DIGITS = 16;

/** Keys that sort as their numbers do. */
export function keyOf(seq: number): string {
  return String(seq).padStart(DIGITS, "0");
}
