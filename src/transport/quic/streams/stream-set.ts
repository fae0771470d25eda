/** The streams of one connection: their numbers and limits, and both windows of the connection (RFC 9000 §4). */
import type { ControlFrame, ControlQueue } from "#transport/quic/control-queue.ts";
import { FLOW_CONTROL_ERROR, QuicFault, STREAM_STATE_ERROR } from "#transport/quic/fault.ts";
import { FRAME } from "#transport/quic/wire/frames.ts";
import type { TransportNumbers } from "#transport/quic/wire/transport-parameters.ts";
import { QuicStream, type StreamHost } from "./quic-stream.ts";
import { ReceivePart } from "./receive-part.ts";
import { SendPart } from "./send-part.ts";
import { sendLimitOf, StreamCounts, type StreamKind } from "./stream-counts.ts";
import { maxStreamDataFrame, resetStreamFrame, stopSendingFrame } from "./stream-frames.ts";

const UNI = 2;
const VARINT = 8;

export interface StreamSetOptions {
  readonly isServer: boolean;
  /** What we allow the peer. */
  readonly own: TransportNumbers;
  /** What a stream that is destroyed says to the peer. */
  readonly abortCode: number;
  readonly controls: ControlQueue;
  /** A stream that the peer has opened; it is the receiver's. */
  readonly onStream: (stream: QuicStream) => void;
  /** No stream of both directions is open any more. */
  readonly onIdle: () => void;
  /** Something is to be sent. */
  readonly wake: () => void;
  readonly sendBufferBytes: () => number;
}

export class StreamSet implements StreamHost {
  readonly #options: StreamSetOptions;
  readonly #streams = new Map<number, QuicStream>();
  readonly #ready: QuicStream[] = [];
  /** Those whose frames have come since the last `handOver`. */
  readonly #arrived: QuicStream[] = [];
  readonly #counts: StreamCounts;
  /** Of both directions. */
  bidiCount = 0;
  #peer: TransportNumbers | null = null;
  #mayReceive: number;
  /** What the peer may send ahead of what was read, on all streams together. */
  #windowBytes: number;
  #received = 0;
  #consumed = 0;
  #maySend = 0;
  #sent = 0;
  readonly #maxData: ControlFrame;
  readonly #count = (bytes: number): void => this.#countReceived(bytes);

  constructor(options: StreamSetOptions) {
    const { own, controls } = options;
    this.#options = options;
    this.#mayReceive = this.#windowBytes = own.maxData;
    this.#counts = new StreamCounts(own, controls);
    this.#maxData = controls.make(1 + VARINT, (out) => {
      out.byte(FRAME.maxData);
      out.varint(this.#mayReceive);
    });
  }

  get sendBufferBytes(): number {
    return this.#options.sendBufferBytes();
  }

  get size(): number {
    return this.#streams.size;
  }

  /** The peer's limits are known; a second time where those of an earlier connection were assumed, which are kept to. */
  begin(peer: TransportNumbers): void {
    this.#peer = peer;
    this.onMaxData(peer.maxData);
    this.onMaxStreams(true, peer.maxStreamsBidi);
    this.onMaxStreams(false, peer.maxStreamsUni);
    for (const [id, { send }] of this.#streams)
      if (send !== null) this.onMaxStreamData(id, sendLimitOf(peer, kindOf(id) === 1, this.#isOurs(id)));
  }

  /** Null: the peer allows no more at the moment. */
  open(isBidi: boolean): QuicStream | null {
    const number = this.#counts.open(isBidi ? 0 : 1);
    if (number === null) return null;
    return this.#make(number * 4 + (isBidi ? 0 : UNI) + (this.#options.isServer ? 1 : 0));
  }

  /** Called once when the peer allows another stream, or never; `cancel` takes the wish back. */
  whenAllowed(isBidi: boolean, on: () => void): { cancel(): void } {
    return this.#counts.whenAllowed(isBidi ? 0 : 1, on);
  }

  #make(id: number): QuicStream {
    const { own, abortCode } = this.#options;
    const isOurs = this.#isOurs(id);
    const isUni = kindOf(id) === 1;
    const window = isUni
      ? own.maxStreamDataUni
      : isOurs
        ? own.maxStreamDataBidiLocal
        : own.maxStreamDataBidiRemote;
    const stream = new QuicStream(this, id, {
      send: isUni && !isOurs ? null : new SendPart(id, sendLimitOf(this.#peer, isUni, isOurs)),
      receive: isUni && isOurs ? null : new ReceivePart(window),
      abortCode,
    });
    this.#streams.set(id, stream);
    if (!isUni) this.bidiCount++;
    return stream;
  }

  /** Null: it is over. Throws `QuicFault` for one that the peer may not speak of. */
  #find(id: number, forReceiving: boolean): QuicStream | null {
    const known = this.#streams.get(id);
    const kind = kindOf(id);
    const isOurs = this.#isOurs(id);
    if (kind === 1 && isOurs === forReceiving)
      throw new QuicFault(STREAM_STATE_ERROR, "a stream of one direction in the other");
    if (known !== undefined) return known;
    const number = Math.floor(id / 4);
    let made: QuicStream | null = null;
    if (isOurs) this.#counts.checkOurs(kind, number);
    else
      this.#counts.openPeers(kind, number, (next) => {
        made = this.#make(next * 4 + (id & 3));
        this.#options.onStream(made);
      });
    return made;
  }

  #isOurs(id: number): boolean {
    return (id & 1) === (this.#options.isServer ? 1 : 0);
  }

  onStream(id: number, offset: number, bytes: Uint8Array, isLast: boolean): void {
    const stream = this.#find(id, true);
    if (stream === null) return;
    stream.takeFrame(offset, bytes, isLast, this.#count);
    if (!stream.hasArrived) {
      stream.hasArrived = true;
      this.#arrived.push(stream);
      this.#options.wake();
    }
    this.#retire(stream);
  }

  /** What has come goes to the readers. */
  handOver(): void {
    for (const stream of this.#arrived.splice(0)) {
      stream.hasArrived = false;
      stream.handOver();
    }
  }

  onResetStream(id: number, finalSize: number): void {
    const stream = this.#find(id, true);
    stream?.takeReset(finalSize, this.#count);
    if (stream !== null) this.#retire(stream);
  }

  onStopSending(id: number, code: number): void {
    this.#find(id, false)?.takeStop(code);
  }

  /** A larger window from now on. */
  widen(windowBytes: number): void {
    this.#windowBytes = windowBytes;
    this.#mayReceive = Math.max(this.#mayReceive, this.#consumed + windowBytes);
    this.#options.controls.push(this.#maxData);
    this.#options.wake();
  }

  #countReceived(bytes: number): void {
    this.#received += bytes;
    if (this.#received > this.#mayReceive)
      throw new QuicFault(FLOW_CONTROL_ERROR, "more bytes than the connection's window");
  }

  onMaxData(limit: number): void {
    if (limit <= this.#maySend) return;
    this.#maySend = limit;
    for (const stream of this.#streams.values()) this.#list(stream);
  }

  onMaxStreamData(id: number, limit: number): void {
    const stream = this.#find(id, false);
    if (stream === null || stream.send === null || limit <= stream.send.limit) return;
    stream.send.limit = limit;
    this.#list(stream);
  }

  onMaxStreams(isBidi: boolean, limit: number): void {
    this.#counts.onMaxStreams(isBidi ? 0 : 1, limit);
  }

  onWritten(stream: QuicStream): void {
    this.#list(stream);
  }

  #list(stream: QuicStream): void {
    if (stream.isListed || stream.send?.hasData(this.credit) !== true) return;
    stream.isListed = true;
    this.#ready.push(stream);
    this.#options.wake();
  }

  /** How many fresh bytes the connection's window lets go. */
  get credit(): number {
    return this.#maySend - this.#sent;
  }

  onConsumed(stream: QuicStream, bytes: number, isLimitDue: boolean): void {
    const { controls, wake } = this.#options;
    this.#consumed += bytes;
    if (this.#mayReceive - this.#consumed <= this.#windowBytes / 2) {
      this.#mayReceive = this.#consumed + this.#windowBytes;
      controls.push(this.#maxData);
      wake();
    }
    const { receive, id } = stream;
    if (!isLimitDue || receive === null) return;
    controls.push(maxStreamDataFrame(controls, id, receive));
    wake();
  }

  onReset(stream: QuicStream, code: number): void {
    const { send, id } = stream;
    if (send === null) return;
    const { controls, wake } = this.#options;
    send.reset(code);
    controls.push(resetStreamFrame(controls, { id, code, send }, () => this.#retire(stream)));
    wake();
  }

  onStopped({ id, receive }: QuicStream, code: number): void {
    const { controls, wake } = this.#options;
    controls.push(stopSendingFrame(controls, { id, code, receive }));
    wake();
  }

  /** The next stream that has something to send; null: none has. */
  next(): QuicStream | null {
    for (;;) {
      const stream = this.#ready[0];
      if (stream === undefined) return null;
      if (stream.send?.hasData(this.credit) === true) return stream;
      stream.isListed = false;
      this.#ready.shift();
    }
  }

  /** Of the stream that `next` gave, so many fresh bytes went; the others get their turn. */
  onSent(freshBytes: number): void {
    this.#sent += freshBytes;
    if (this.#ready.length < 2) return;
    const first = this.#ready.shift();
    if (first !== undefined) this.#ready.push(first);
  }

  onAcked(id: number, offset: number, length: number, isLast: boolean): void {
    const stream = this.#streams.get(id);
    if (stream === undefined || stream.send === null) return;
    stream.send.onAcked(offset, length, isLast);
    stream.onRoom();
    this.#retire(stream);
  }

  onLost(id: number, offset: number, length: number, isLast: boolean): void {
    const stream = this.#streams.get(id);
    if (stream === undefined) return;
    stream.send?.onLost(offset, length, isLast);
    this.#list(stream);
  }

  /** A stream of which both directions are settled gives its place back. */
  #retire(stream: QuicStream): void {
    const { send, receive, id } = stream;
    if (stream.isRetired || send?.isDone === false || receive?.isComplete === false) return;
    stream.isRetired = true;
    this.#streams.delete(id);
    if (kindOf(id) === 0 && --this.bidiCount === 0) this.#options.onIdle();
    if (this.#isOurs(id)) return;
    this.#counts.giveBack(kindOf(id));
    this.#options.wake();
  }

  /** The connection is over. */
  abandon(error: Error): void {
    for (const stream of this.#streams.values()) stream.abandon(error);
    this.#streams.clear();
    this.bidiCount = 0;
    this.#ready.length = 0;
    this.#counts.abandon();
  }
}

function kindOf(id: number): StreamKind {
  return (id & UNI) === 0 ? 0 : 1;
}
