import type { Verdict } from "./probe.ts";

const MAX_NAME_BYTES = 253;
const NAME = /^[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})+$/;
const LAST_LABEL_OF_NUMBERS = /\.\d+$/;

/**
 * What a client wrote as the host. Stricter than what resolvers take, because the text goes into rules, logs and dials:
 * a name of at least two labels, of which the last is no number (that would be an address in some spelling).
 */
export function hostVerdict(text: string): Verdict {
  const lower = text.toLowerCase();
  const host = lower.endsWith(".") ? lower.slice(0, -1) : lower;
  const good = host.length <= MAX_NAME_BYTES && NAME.test(host) && !LAST_LABEL_OF_NUMBERS.test(host);
  return good ? { host } : "other";
}
