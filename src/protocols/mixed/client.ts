/** A client of an http, socks or mixed listener. */
import type { Duplex } from "node:stream";
import type { ConnectionEnds } from "#net/listen/accept.ts";
import type { Authenticator } from "./accounts.ts";

/** One that was let in. */
export interface Client {
  /** TLS, if any, is already taken off. Has an 'error' listener. */
  readonly stream: Duplex;
  readonly arrival: ConnectionEnds;
  /** Null: this client need not say who it is. */
  readonly accounts: Authenticator | null;
  /** By SOCKS5, the client has been told so already. */
  readonly isGreeted?: boolean;
}
