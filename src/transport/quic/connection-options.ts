/** What a connection is made of, and what it tells its owner. */
import type { Endpoint } from "#core/endpoint.ts";
import type { QuicCiphers } from "#platform/quic.ts";
import type { Congestion } from "./congestion/congestion.ts";
import type { SendDatagrams } from "./datagram-run.ts";
import type { QuicStream } from "./streams/quic-stream.ts";
import type { OpenQuicTls } from "./tls.ts";
import type { TransportNumbers } from "./wire/transport-parameters.ts";

export interface ConnectionOptions {
  readonly ciphers: QuicCiphers;
  readonly openTls: OpenQuicTls;
  /** What we say of ourselves; what is absent has the default of `OWN_NUMBERS`. */
  readonly numbers?: Partial<TransportNumbers>;
  readonly congestion: Congestion;
  /** Datagrams come with their marks, and go with ECT(0) where `Path.isMarked` says so. Absent: no. */
  readonly usesEcn?: boolean;
  /** The largest UDP payload that is tried. */
  readonly mostDatagramBytes?: number;
  /** What a stream that is destroyed in the middle says to the peer. */
  readonly abortCode?: number;
  /** Silence after which the peer is asked whether it is there, while streams are open; 0: never. */
  readonly keepAliveMs?: number;
}

/** Of the accepting side: what the client's first packet said. */
export interface ServerStart {
  /** The destination of the client's first Initial, and its own id. */
  readonly original: Uint8Array;
  readonly client: Uint8Array;
  /** Where the packet came from; null: all datagrams come from and go to one place. */
  readonly from: Endpoint | null;
  /** The client has shown its address by a token; the id that our Retry gave, null: there was none. */
  readonly isValidated: boolean;
  readonly retrySource: Uint8Array | null;
  /** Of an id of ours. */
  readonly resetTokenOf: (id: Uint8Array) => Uint8Array;
  /** One that was not given before, of `CID_BYTES`; absent: a random one. */
  readonly makeId?: () => Uint8Array;
}

export interface ConnectionStatistics {
  readonly lostPackets: number;
  readonly keyUpdates: number;
  readonly datagramBytes: number;
  /** Packets go with ECT(0), and the peer has told that they arrive so. */
  readonly isMarking: boolean;
  /** How many of them have met congestion. */
  readonly congestionMarks: number;
  /** The handshake went on with an earlier session. */
  readonly isResumed: boolean;
  /** What was said before the handshake was done was understood; false until that is known. */
  readonly isEarlyAccepted: boolean;
}

/** Called from within the methods of the connection; none of them may throw. */
export interface ConnectionEvents extends SendDatagrams {
  /** `flush` is to be called soon. */
  wake(): void;
  /** Of the accepting side: streams of the client may come that have been sent before, by anybody (0-RTT). */
  early?(alpn: string | null): void;
  /** The peer is the right one, and streams may be opened. */
  connected(alpn: string | null): void;
  /** The peer has opened a stream, which is the receiver's. */
  stream(stream: QuicStream): void;
  /** A datagram of the application; its memory is lent until the call returns. */
  datagram(payload: Uint8Array): void;
  /** The last open stream of both directions has ended. */
  idle(): void;
  /** An id by which the peer calls us came or went. */
  ownId(id: Uint8Array, isGiven: boolean): void;
  /** The peer sends from another host now, and nothing is known of the way there: congestion control begins anew. */
  moved(): void;
  /** No more happens. Null: closed by us without an error. */
  closed(error: Error | null): void;
}

const MIB = 1024 * 1024;

export const OWN_NUMBERS = {
  idleTimeoutMs: 30_000,
  maxUdpPayload: 65_527,
  maxData: 20 * MIB,
  maxStreamDataBidiLocal: 8 * MIB,
  maxStreamDataBidiRemote: 8 * MIB,
  maxStreamDataUni: 8 * MIB,
  maxStreamsBidi: 1024,
  maxStreamsUni: 1024,
  maxDatagramFrame: 65_535,
} as const;
