/** What a worker reads of a client before the request: a listener names it by its index in this list. */
import type { PlainHandshake, TlsOffload } from "#core/held.ts";

export const HANDSHAKES: readonly (PlainHandshake | TlsOffload["handshake"])[] = [
  "none",
  "mixed",
  "socks",
  "http",
  "redirected",
  "tls",
];
