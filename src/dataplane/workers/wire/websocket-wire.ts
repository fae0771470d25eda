import { ProtocolError } from "#core/errors.ts";
import type { WebSocketLayer } from "#core/wire-state.ts";
import { EAGAIN, EINTR } from "#platform/linux/relay-calls.ts";
import { FrameReader } from "#transport/websocket/frame-reader.ts";
import {
  BINARY,
  encodeClose,
  encodeFrame,
  headBytes,
  KEY_BYTES,
  PONG,
  type WebSocketRole,
  writeHead,
} from "#transport/websocket/frames.ts";
import { mask } from "#transport/websocket/mask.ts";
import type { MaskKeys } from "./mask-keys.ts";
import { BROKEN } from "./sealed-reader.ts";
import { SilentEnd } from "./silent-end.ts";
import type { Wire, WireIo } from "./wire.ts";
import { WireLayer } from "./wire-layer.ts";

/** Frames that a look at what is there passes over at most, for they may be empty. */
const MOST_EMPTY = 64;

/** A wire with frames of WebSocket. What the wire below has not taken of a frame is kept. */
export class WebSocketWire extends WireLayer implements Wire {
  readonly bareSource = -1;
  readonly bareTarget = -1;
  readonly #role: WebSocketRole;
  readonly #keys: MaskKeys;
  readonly #reader: FrameReader;
  /** A client's end, which waits: see `endAfterSilenceMs` of `CodecStream`. */
  #lateEnd: SilentEnd | null;
  /** Of the call that is under way: where frames lie, and how many plain bytes stand at its start. */
  #bytes: Uint8Array = new Uint8Array(0);
  #plainBytes = 0;
  /** The result of all further reads; null: reading goes on. */
  #last: number | null = null;
  /** Framed, and not taken by the wire below yet. */
  #rest: Uint8Array | null = null;
  /** The answer to the latest ping; goes out when this side has its turn. */
  #pong: Uint8Array | null = null;
  #hasSaidEnd = false;

  constructor(inner: Wire, { role, reading }: WebSocketLayer, keys: MaskKeys) {
    super(inner);
    this.#role = role;
    this.#keys = keys;
    this.#lateEnd = role === "client" ? new SilentEnd() : null;
    const sink = {
      onPayload: (from: number, to: number) => this.#take(from, to),
      onPing: (payload: Uint8Array) => void (this.#pong = encodeFrame(role, PONG, payload)),
      onClose: () => void (this.#last = 0),
    };
    this.#reader = new FrameReader(role, sink, reading);
  }

  override get readable(): boolean {
    return this.#last !== null || this.inner.readable;
  }

  override set readable(readable: boolean) {
    this.inner.readable = readable;
  }

  override get pending(): boolean {
    return this.inner.pending || this.#rest !== null || (this.#pong !== null && !this.#hasSaidEnd);
  }

  read(io: WireIo, size: number): number {
    if (this.#last !== null) return this.#last;
    const bytes = this.inner.read(io, size);
    if (bytes === 0) return (this.#last = 0); // peers often close without a close frame
    if (bytes < 0) return bytes;
    this.#lateEnd?.onRead();
    const plainBytes = this.#unframe(io, bytes);
    return plainBytes > 0 ? plainBytes : (this.#last ?? EINTR);
  }

  /** Payload at the start of the thread's buffer, what came in front of a fault, too. */
  #unframe({ calls }: WireIo, bytes: number): number {
    this.#bytes = calls.buffer;
    this.#plainBytes = 0;
    try {
      this.#reader.read(calls.buffer, 0, bytes);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#last = BROKEN;
    }
    return this.#plainBytes;
  }

  #take(from: number, to: number): void {
    if (this.#last !== null) return; // behind the peer's own end
    if (from !== this.#plainBytes) this.#bytes.copyWithin(this.#plainBytes, from, to);
    this.#plainBytes += to - from;
  }

  available(io: WireIo): number {
    for (let frames = 0; this.#last === null && frames < MOST_EMPTY; frames++) {
      const { payloadBytes } = this.#reader;
      const bytes =
        payloadBytes > 0 ? this.inner.available(io) : this.inner.read(io, this.#reader.missingBytes);
      if (bytes === 0) this.#last = 0;
      if (bytes < 0) return bytes;
      if (payloadBytes > 0 && bytes > 0) return Math.min(bytes, payloadBytes);
      if (bytes > 0) this.#unframe(io, bytes);
    }
    return this.#last ?? EINTR;
  }

  /** All of it. */
  write(io: WireIo, size: number): number {
    const { buffer } = io.calls;
    const head = headBytes(this.#role, size);
    if (this.#role === "client") {
      const key = this.#keys.next();
      mask(buffer, 0, size, key, 0);
      buffer.copyWithin(head, 0, size);
      buffer.set(key, head - KEY_BYTES);
    } else buffer.copyWithin(head, 0, size);
    writeHead(buffer, this.#role, BINARY, size);
    const sent = this.#send(io, head + size);
    return sent < 0 ? sent : size;
  }

  /** From the start of the thread's buffer; what is not taken is kept. 0, or an errno. */
  #send(io: WireIo, size: number): number {
    const sent = this.inner.write(io, size);
    if (sent < 0 && sent !== EAGAIN && sent !== EINTR) return sent;
    const taken = Math.max(0, sent);
    if (taken === size) return 0;
    this.#rest = io.calls.buffer.slice(taken, size);
    io.bufferedBytes += size - taken;
    return 0;
  }

  override flush(io: WireIo): number {
    if (this.inner.pending) return this.inner.flush(io);
    const rest = this.#rest ?? this.#pong;
    if (rest === null) return 0;
    if (this.#rest === null) this.#pong = null;
    else this.#forgetRest(io);
    io.calls.buffer.set(rest);
    const sent = this.#send(io, rest.length);
    return sent < 0 ? sent : this.#rest === null ? rest.length : rest.length - this.#rest.length || EAGAIN;
  }

  #forgetRest(io: WireIo): void {
    io.bufferedBytes -= this.#rest?.length ?? 0;
    this.#rest = null;
  }

  /** First in WebSocket, then below. */
  endWriting(io: WireIo): number {
    if (!this.#hasSaidEnd) {
      if (this.#last === null && this.#lateEnd?.isDue(io, this.inner.readable) === false) return EAGAIN;
      this.#hasSaidEnd = true;
      const close = encodeClose(this.#role);
      io.calls.buffer.set(close);
      const said = this.#send(io, close.length);
      if (said < 0) return said;
    }
    if (this.#rest !== null) return EAGAIN;
    if (this.#last !== null) this.drain(io);
    return this.inner.endWriting(io);
  }

  override onUnwanted(): void {
    this.#lateEnd = null;
  }

  override drop(io: WireIo): void {
    this.#forgetRest(io);
    super.drop(io);
  }
}
