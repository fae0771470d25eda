/** The accepting side of a TLS 1.3 connection, without I/O. */
import { Tls13Connection } from "./connection.ts";
import type { HelloChoice } from "./hello-choice.ts";
import { ServerHandshake, type ServerHandshakeOptions } from "./server-handshake.ts";

export class ServerConnection extends Tls13Connection<ServerHandshake> {
  /** `portable`: by `node:crypto` alone, without FFI. */
  constructor(options: ServerHandshakeOptions, portable = false) {
    super((output) => new ServerHandshake(options, output), portable);
  }

  /** What of the client's hello was taken; null before that. */
  get choice(): HelloChoice | null {
    return this.handshake.choice;
  }

  /** The client's name for the server was hidden. */
  get isHidden(): boolean {
    return this.handshake.isHidden;
  }
}
