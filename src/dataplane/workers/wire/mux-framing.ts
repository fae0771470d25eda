import { LAST_ID, MAX_HELD_BYTES } from "#transport/mux/session.ts";

/** What a protocol of many streams in one connection says, and how it is understood. One object a session. */
export abstract class MuxFraming {
  /** Of a frame that comes. */
  abstract readonly headBytes: number;
  /** In front of data that goes. */
  abstract readonly dataHeadBytes: number;
  /** Of one data frame. */
  abstract readonly mostBodyBytes: number;
  /** Of a client's streams, which have odd numbers. */
  abstract readonly firstId: number;
  /** Numbers of streams are never used again; a session that has come so far takes no more. */
  readonly lastId: number = LAST_ID;
  /** What a stream may send before it is granted more, and what its peer may; Infinity: there are no windows. */
  abstract readonly sendWindow: number;
  abstract readonly receiveWindow: number;
  /** Of sending. */
  readonly mostWindow: number = Infinity;
  /** Of all streams, waiting for readers; beyond, nothing is read. Infinity: the peer is granted no more than it may have waiting. */
  readonly mostHeldBytes: number = MAX_HELD_BYTES;
  /** Peers take an end for the end of both directions: ours is told when the peer has been silent for a while. */
  abstract readonly isPatient: boolean;
  /** Streams begin with a request, and their answer with a byte; false: both are the payload's. */
  readonly hasRequests: boolean = true;
  abstract encodeOpen(id: number): Uint8Array;
  /** Of a client; `isOpen`: there is such a stream already. */
  abstract mayOpen(id: number, isOpen: boolean): boolean;
  /** A server's, for a stream that it takes; null: it says nothing. */
  abstract encodeAccepted(id: number): Uint8Array | null;
  abstract writeDataHead(out: Uint8Array, at: number, id: number, size: number): void;
  abstract encodeEnd(id: number): Uint8Array;
  /** Of a client that goes on reading. */
  encodeHalfEnd(id: number): Uint8Array {
    return this.encodeEnd(id);
  }

  /** For a stream that is given up, or over; null: the peer knows it. */
  abstract encodeLeft(id: number, endSent: boolean, farEnded: boolean): Uint8Array | null;
  /** For one that is not taken, of a peer that has too many. */
  encodeRefused(id: number): Uint8Array | null {
    return this.encodeLeft(id, false, false);
  }

  /** So many bytes more may come. */
  abstract encodeCredit(id: number, bytes: number): Uint8Array;
  /** So many bytes more may come of all streams together, while so many wait for readers; null: none now. */
  encodeShared(_heldBytes: number): Uint8Array | null {
    return null;
  }

  /** For a session with streams, now and then. Null: its peer has stopped answering. */
  abstract keepAlive(): Uint8Array | null;
  /** Empty where the protocol has none. */
  abstract encodeFinal(isFault: boolean): Uint8Array;
  /** A header. False: the peer has broken the protocol. */
  abstract onHead(head: Buffer, heard: MuxHeard): boolean;

  /** What was asked for by `collect`, to be used at once. False: as of `onHead`. */
  onCollected(_bytes: Buffer, _heard: MuxHeard): boolean {
    return false;
  }

  /** How many bytes of data a stream with such a window may send now. */
  payloadIn(window: number): number {
    return window;
  }

  /** At one time. */
  get mostStreams(): number {
    return Infinity;
  }

  /** So many bytes of data go out: what they take of the stream's window. */
  spend(bytes: number): number {
    return bytes;
  }

  /** Of one stream. Null: what data frames have in them is the data. */
  newBody(_onData: MuxBody["onData"]): MuxBody | null {
    return null;
  }
}

/** Data that is framed once more within its data frames, as it comes. */
export interface MuxBody {
  /** Called with what of the bytes is data, between two indices. */
  readonly onData: (bytes: Uint8Array, from: number, to: number) => void;
  /** Those between the two indices. Throws `ProtocolError`. */
  take(bytes: Uint8Array, from: number, to: number): void;
}

/** A stream, as its session has it. */
export interface SessionStream {
  /** 0: the peer has not heard of it. */
  readonly id: number;
  readonly endSent: boolean;
  readonly farEnded: boolean;
  /** The peer has reset it, and is told nothing more. */
  isReset: boolean;
  /** Its task wants a turn. */
  readonly wake: () => void;
  /** Data of the peer, between the two indices. */
  arrive(bytes: Uint8Array, from: number, to: number): void;
  /** All of a data frame has arrived. Absent: that means nothing. */
  onWhole?(): void;
  /** The peer sends so many bytes. False: it may not. */
  spend(bytes: number): boolean;
  /** So many of these are done with. */
  taken(bytes: number): void;
  /** The peer takes so many bytes more, or fewer. False: more than there can be. */
  widen(bytes: number): boolean;
  onFarEnd(): void;
  /** The peer's end, when it comes, is that of its own direction. Absent: it always is. */
  onKeepsReading?(): void;
  /** Behind its end the peer still says that nothing more is taken. */
  onReset(): void;
  /** Its session is over. */
  onLost(): void;
}

/** What a header may mean. Streams that are not known were closed a moment ago. False: the peer may not say it. */
export interface MuxHeard {
  /** The framing itself wants so many bytes that follow, more than none; `onCollected` has them once they are all there. */
  collect(bytes: number): void;
  onOpen(id: number): boolean;
  /**
   * So many bytes of it follow; `isLast`: behind them it has ended. `padded`: what its padding takes of windows, of which all
   * but the first byte follow behind the data; 0: there is none.
   */
  onData(id: number, bytes: number, isLast: boolean, padded?: number): boolean;
  onCredit(id: number, bytes: number): boolean;
  /** All streams may send so many bytes more, or fewer. */
  onFirstWindow(change: number): void;
  /** The connection takes more, whatever its streams may send. */
  onRoom(): void;
  /** The peer may be due more by `encodeShared`. */
  share(): void;
  onFarEnd(id: number): void;
  onKeepsReading(id: number): void;
  onReset(id: number): void;
  /** What it was told makes the stream useless: it ends as by a reset, which is ours. */
  refuse(id: number): void;
  /** It is answered. */
  say(frame: Uint8Array): void;
  /** The peer takes no more streams; those behind that one it has not looked at. */
  retire(lastId?: number): void;
}
