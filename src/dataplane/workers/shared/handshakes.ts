/** What a worker reads of a connection before it asks: a listener names it by its index in this list. */
import type { PlainHandshake } from "#core/accepted.ts";

export const HANDSHAKES: readonly (PlainHandshake | "tls" | "tls-first-bytes" | "reality")[] = [
  "none",
  "mixed",
  "socks",
  "http",
  "redirected",
  "transparent",
  "tls",
  "first-bytes",
  "tls-first-bytes",
  "reality",
];
