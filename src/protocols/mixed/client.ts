/** A client of an http, socks or mixed listener. */
import type { AcceptedConnection } from "#core/accepted.ts";
import type { Authenticator } from "./accounts.ts";

/** One that was let in. */
export interface Client {
  /** TLS, if any, is already taken off. */
  readonly connection: AcceptedConnection;
  /** Null: this client need not say who it is. */
  readonly accounts: Authenticator | null;
}
