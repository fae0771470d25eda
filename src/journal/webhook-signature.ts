/**
 * Signatures of webhooks (https://www.standardwebhooks.com, "Webhook scheme"): HMAC-SHA256 over `id.timestamp.body`, in
 * base64 behind `v1,`; several keys give several signatures with a blank between, so that a receiver can change keys.
 */
import { createHmac } from "node:crypto";

const PREFIX = "whsec_";
const FEWEST_KEY_BYTES = 24;
const MOST_KEY_BYTES = 64;
const MOST_KEYS = 4;

/** Keys, one a line, each `whsec_` and base64 of 24 to 64 bytes. A text says what is wrong, without quoting it. */
export function keysOf(text: string): readonly Buffer[] | string {
  const lines = text.split(/\s+/).filter((line) => line !== "");
  if (lines.length === 0 || lines.length > MOST_KEYS) return `expected 1 to ${MOST_KEYS} keys, one a line`;
  const keys = lines.map((line) => keyOf(line));
  const isGood = (key: Buffer | null): key is Buffer => key !== null;
  return keys.every(isGood)
    ? keys
    : `expected whsec_ and the base64 of ${FEWEST_KEY_BYTES} to ${MOST_KEY_BYTES} random bytes`;
}

function keyOf(line: string): Buffer | null {
  const body = line.startsWith(PREFIX) ? line.slice(PREFIX.length) : "";
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(body)) return null;
  const key = Buffer.from(body, "base64");
  return key.length >= FEWEST_KEY_BYTES && key.length <= MOST_KEY_BYTES ? key : null;
}

export interface Signed {
  readonly id: string;
  readonly timestampSeconds: number;
  readonly body: string;
}

/** The value of `webhook-signature`. */
export function signatureOf({ id, timestampSeconds, body }: Signed, keys: readonly Buffer[]): string {
  const text = `${id}.${timestampSeconds}.${body}`;
  return keys.map((key) => `v1,${createHmac("sha256", key).update(text).digest("base64")}`).join(" ");
}
