import type { Network } from "#core/session.ts";

/** `more`: not enough bytes to decide; `other`: not this protocol, or it names no host. */
export type Verdict = "more" | "other" | { readonly host: string };

/**
 * One attempt on one connection. `feed` gets the pieces (of a stream) or the datagrams in order, keeps what it needs of
 * them within a bound of its own, and never throws. After a verdict other than `more` it is not called again.
 */
export interface Probe {
  feed(bytes: Uint8Array): Verdict;
}

/** A protocol in whose first bytes the client names a host. */
export interface SniffProtocol {
  /** As in files: `TLS`. */
  readonly type: string;
  readonly network: Network;
  open(): Probe;
}
