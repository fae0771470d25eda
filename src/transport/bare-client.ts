import type { Duplex } from "node:stream";
import type { AcceptedConnection } from "#core/accepted.ts";
import type { Secured } from "./security.ts";

/** A client over nothing but TCP: looking at its stream takes the socket from a worker that has it. */
export class BareClient implements Secured {
  readonly alpn = null;
  readonly serverName = null;
  readonly bypass = null;
  readonly connection: AcceptedConnection;

  constructor(connection: AcceptedConnection) {
    this.connection = connection;
  }

  get stream(): Duplex {
    return this.connection.stream();
  }
}
