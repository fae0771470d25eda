/** What a protocol of many streams in one connection says, and how it is understood. One object a session. */
export interface MuxFraming {
  readonly headBytes: number;
  /** Of one data frame. */
  readonly mostBodyBytes: number;
  /** Of a client's streams, which have odd numbers. */
  readonly firstId: number;
  /** What a stream may send before it is granted more, and what its peer may; Infinity: there are no windows. */
  readonly sendWindow: number;
  readonly receiveWindow: number;
  /** Peers take an end for the end of both directions: ours is told when the peer has been silent for a while. */
  readonly isPatient: boolean;
  encodeOpen(id: number): Uint8Array;
  /** Of a client; `isOpen`: there is such a stream already. */
  mayOpen(id: number, isOpen: boolean): boolean;
  /** A server's, for a stream that it takes; null: it says nothing. */
  encodeAccepted(id: number): Uint8Array | null;
  writeDataHead(out: Uint8Array, at: number, id: number, size: number): void;
  encodeEnd(id: number): Uint8Array;
  /** For a stream that is given up, or over; null: the peer knows it. */
  encodeLeft(id: number, endSent: boolean, farEnded: boolean): Uint8Array | null;
  /** So many bytes more may come. */
  encodeCredit(id: number, bytes: number): Uint8Array;
  /** For a session with streams, now and then. Null: its peer has stopped answering. */
  keepAlive(): Uint8Array | null;
  /** Empty where the protocol has none. */
  encodeFinal(isFault: boolean): Uint8Array;
  /** A header. False: the peer has broken the protocol. */
  onHead(head: Buffer, heard: MuxHeard): boolean;
}

/** A stream, as its session has it. */
export interface SessionStream {
  /** 0: the peer has not heard of it. */
  readonly id: number;
  readonly endSent: boolean;
  readonly farEnded: boolean;
  /** Its task wants a turn. */
  readonly wake: () => void;
  /** Data of the peer, between the two indices. */
  arrive(bytes: Uint8Array, from: number, to: number): void;
  /** The peer sends so many bytes. False: it may not. */
  spend(bytes: number): boolean;
  /** The peer takes so many bytes more. False: more than there can be. */
  widen(bytes: number): boolean;
  onFarEnd(): void;
  /** Behind its end the peer still says that nothing more is taken. */
  onReset(): void;
  /** Its session is over. */
  onLost(): void;
}

/** What a header may mean. Streams that are not known were closed a moment ago. False: the peer may not say it. */
export interface MuxHeard {
  /** So many bytes of it follow; `isLast`: behind them it has ended. */
  onOpen(id: number): boolean;
  onData(id: number, bytes: number, isLast: boolean): boolean;
  onCredit(id: number, bytes: number): boolean;
  onFarEnd(id: number): void;
  onReset(id: number): void;
  /** It is answered. */
  say(frame: Uint8Array): void;
  /** The peer takes no more streams. */
  retire(): void;
}
