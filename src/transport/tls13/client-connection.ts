/** The dialling side of a TLS 1.3 connection, without I/O. */
import { ClientHandshake, type ClientHandshakeOptions } from "./client-handshake.ts";
import { Tls13Connection } from "./connection.ts";
import type { Agreement } from "./encrypted-extensions.ts";
import type { Ticket } from "./post-handshake.ts";

export interface ClientConnectionOptions extends ClientHandshakeOptions {
  /** By `node:crypto` alone, without FFI. */
  readonly portable?: boolean;
}

export class ClientConnection extends Tls13Connection<ClientHandshake> {
  constructor(options: ClientConnectionOptions) {
    super((output) => new ClientHandshake(options, output), options.portable);
  }

  /** What the server chose; null before its EncryptedExtensions. */
  get agreement(): Agreement | null {
    return this.handshake.agreement;
  }

  /** Takes tickets for those who read on behind `depart`. */
  get ticketKeeper(): (ticket: Ticket) => void {
    return this.handshake.ticketKeeper;
  }
}
