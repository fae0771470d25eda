/** A client of an http, socks or mixed listener. */
import type { AcceptedConnection } from "#core/accepted.ts";
import type { Authenticator } from "./accounts.ts";

/** An admitted client. */
export interface Client {
  /** TLS, if any, is already taken off. */
  readonly connection: AcceptedConnection;
  /** Null: this client needs no credentials. */
  readonly accounts: Authenticator | null;
}
