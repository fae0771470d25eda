/** Which local program opened a connection: what is asked, and what answers. */
import type { ProcessInfo } from "#core/rule.ts";
import type { Endpoint, Network } from "#core/session.ts";

/** A client's socket as it looks from the client's side. */
export interface SocketQuery {
  readonly network: Network;
  /** Its own address. */
  readonly source: Endpoint;
  /** What it may be connected to: the listener, or, redirected on the way, where it wanted to go. */
  readonly peers: readonly Endpoint[];
}

/** Null: not a socket of this machine, or not permitted to know. Never rejects. */
export interface ProcessLookup {
  /** The owner of the socket; one look into the kernel's tables. */
  uid(query: SocketQuery): Promise<number | null>;
  /** The program that holds the socket: a search through open files where it was not seen lately. */
  process(query: SocketQuery): Promise<ProcessInfo | null>;
}
