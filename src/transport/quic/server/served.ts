/** A client of a QUIC listener as protocols see it, in whichever thread its connection lives. */
import type { Duplex } from "node:stream";
import type { Endpoint } from "#core/endpoint.ts";
import type { CongestionChoice } from "#transport/quic/congestion/choice.ts";

export interface ServedStream extends Duplex {
  /** Null: the peer alone sends on it. */
  readonly send: object | null;
  /** What a reset says to the peer. */
  abortCode: number;
}

export interface ServedConnection {
  /** Null: the peer allows no more at the moment. */
  open(isBidi: boolean): ServedStream | null;
  /** Says the end to the peer, at once. */
  close(code: number, reason: string): void;
  /** The peer may send so much ahead from now on. */
  widen(windowBytes: number): void;
  /** Of one piece or two, which are copied. It is sent once, or dropped. */
  sendDatagram(payload: Uint8Array, rest?: Uint8Array): void;
  readonly maxDatagramBytes: number;
  /** Streams that are open, of either kind. */
  readonly openStreams: number;
  /** A key of the TLS connection (RFC 8446 §7.5), until the client was settled. A promise where another thread has it; it rejects where there is none. */
  exportKey(label: Uint8Array, context: Uint8Array, size: number): Buffer | Promise<Buffer>;
}

export interface ServedClient {
  readonly connection: ServedConnection;
  /** Settles when the connection is over, however that came; null: by us. */
  readonly closed: Promise<Error | null>;
  /** Where the client is now. */
  readonly peer: Endpoint;
  /** The listening side's own address. */
  readonly local: Endpoint;
  /** The client has shown who it is; nothing is exported from its TLS any more. */
  settle(): void;
  /** From now on with this congestion control. */
  useCongestion(choice: CongestionChoice): void;
}

/** What the owner of a connection does with what comes. None of it may throw. */
export interface ServedEvents {
  /** The client has opened a stream, which is the receiver's. */
  onStream(stream: ServedStream): void;
  /** The payload is lent until the call returns. */
  onDatagram(payload: Uint8Array): void;
}
