/** What a connection asks of a handshake, of either side, and what a handshake does with its connection. */
import type { CipherSuite } from "./cipher-suites.ts";
import type { HandshakeMessage } from "./handshake-messages.ts";
import type { Ticket } from "./post-handshake.ts";

/** Whole messages in, messages and secrets out; `TlsFault` ends it. */
export interface Handshake {
  /** The peer is known, payload may go both ways. */
  readonly isDone: boolean;
  /** Of the connection; null: not known yet, or its records stay with the event loop. */
  readonly suite: CipherSuite | null;
  /** To be called first. */
  start(): void;
  /** The next message of the peer. */
  take(message: HandshakeMessage): void;
  /** The peer may be dialled with it again; absent: it may not send tickets. */
  takeTicket?(ticket: Ticket): void;
  /** Frees its private keys, where a library outside keeps them. */
  [Symbol.dispose]?(): void;
}

/** Where messages and secrets go. Each secret is for everything behind the call. */
export interface HandshakeOutput {
  send(messages: Buffer): void;
  openWith(suite: CipherSuite, secret: Buffer): void;
  /** `mostContent`: of one record, where the peer has set a limit. */
  sealWith(suite: CipherSuite, secret: Buffer, mostContent?: number | null): void;
}

/** What a handshake does with the connection. Each secret is for everything behind the call. */
export interface ConnectionOutput extends HandshakeOutput {
  /** Whole records as they are. */
  sendRecords(records: Buffer): void;
  /** A record without payload, filled up to this length with its header. Only behind `sealWith`. */
  sendPadding(recordBytes: number): void;
}
