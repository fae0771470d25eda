import type { Duplex } from "node:stream";
import { DialError, ProtocolError, asError } from "#core/errors.ts";
import { putBack } from "#core/stream.ts";

/** What a decoder made of the bytes at hand, and how many of them it took. */
export interface Decoded<T> {
  readonly value: T;
  readonly size: number;
}

/**
 * Looks at all bytes that have come since the last message; `seen` of them it has met in an earlier call, so a search
 * for an end mark need not start over. Null asks for more; throws `ProtocolError` for what cannot become a message.
 */
export type Decoder<T> = (bytes: Buffer, seen: number) => Decoded<T> | null;

export interface ReadBounds {
  /** For the whole handshake, from now on. */
  readonly timeoutMs?: number;
  /** A message that is not complete within so many bytes is refused. At most the stream's high-water mark is useful. */
  readonly maxBytes?: number;
  readonly signal?: AbortSignal;
  /** Called once, when it is disposed of. */
  readonly onDone?: () => void;
}

export const HANDSHAKE_TIMEOUT_MS = 30_000;
const MAX_MESSAGE_BYTES = 64 * 1024;

interface Pending {
  /** How many bytes the message took; null: it needs more. Settles the promise in the first case. */
  attempt(bytes: Buffer, seen: number): number | null;
  reject(error: Error): void;
}

/**
 * Reads a handshake message by message from a stream that another part owns. Bytes behind a message go back to the
 * stream at once, so nothing is held between messages, and an end that follows them stays unread with them. Disposing
 * stops reading; a `take` in progress is rejected then. One `take` at a time.
 */
export class ByteReader implements Disposable {
  readonly #stream: Duplex;
  readonly #maxBytes: number;
  readonly #timer: NodeJS.Timeout;
  readonly #signal: AbortSignal | undefined;
  readonly #onDone: (() => void) | undefined;
  readonly #onAbort = () => this.#fail(new DialError("aborted", "the handshake was aborted"));
  readonly #onReadable = () => this.#pump();
  readonly #onEnd = () =>
    this.#fail(new ProtocolError("the peer closed the connection in the middle of the handshake"));
  readonly #onError = (error: Error) => this.#fail(error);
  #buffered: Buffer | null = null;
  #bufferedSize = 0;
  #pending: Pending | null = null;
  #failure: Error | null = null;
  #disposed = false;

  constructor(stream: Duplex, bounds: ReadBounds = {}) {
    const { timeoutMs = HANDSHAKE_TIMEOUT_MS, maxBytes = MAX_MESSAGE_BYTES, signal, onDone } = bounds;
    this.#stream = stream;
    this.#maxBytes = maxBytes;
    this.#signal = signal;
    this.#onDone = onDone;
    this.#timer = setTimeout(() => this.#fail(tooSlow(timeoutMs)), timeoutMs);
    stream.on("readable", this.#onReadable).on("end", this.#onEnd);
    stream.on("error", this.#onError).on("close", this.#onEnd);
    signal?.addEventListener("abort", this.#onAbort);
    if (signal?.aborted === true) this.#onAbort();
    else if (stream.destroyed || stream.readableEnded) this.#onEnd();
  }

  /**
   * The next message. Rejects with what `decode` threw; with `ProtocolError` when the stream ends or the message is too
   * long; with an `ETIMEDOUT` error at the deadline; with `DialError` aborted; with the stream's own error.
   */
  take<T>(decode: Decoder<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== null) return reject(this.#failure);
      if (this.#disposed) return reject(givenUp());
      const attempt = (bytes: Buffer, seen: number): number | null => {
        const decoded = decode(bytes, seen);
        if (decoded === null) return null;
        resolve(decoded.value);
        return decoded.size;
      };
      this.#pending = { attempt, reject };
      this.#pump();
    });
  }

  /** May be called again: taking a 'readable' listener off twice would stop a stream that was resumed meanwhile. */
  [Symbol.dispose](): void {
    if (this.#disposed) return;
    this.#disposed = true;
    clearTimeout(this.#timer);
    this.#onDone?.();
    this.#signal?.removeEventListener("abort", this.#onAbort);
    const stream = this.#stream;
    stream.off("readable", this.#onReadable).off("end", this.#onEnd);
    stream.off("error", this.#onError).off("close", this.#onEnd);
    if (this.#pending !== null) this.#fail(givenUp());
  }

  /** To the last buffered chunk: a `read` returns one of them, and no event reports those behind it. */
  #pump(): void {
    for (let pending = this.#pending; pending !== null; pending = this.#pending) {
      const chunk: Buffer | null = this.#stream.read();
      if (chunk === null) return;
      this.#detachable(pending, chunk);
    }
  }

  #detachable(pending: Pending, chunk: Buffer): void {
    const seen = this.#bufferedSize;
    const bytes = this.#append(chunk);
    let size: number | null;
    try {
      size = pending.attempt(bytes, seen);
    } catch (error) {
      this.#fail(asError(error));
      return;
    }
    if (size === null) {
      if (bytes.length >= this.#maxBytes)
        this.#fail(new ProtocolError(`no complete message within ${this.#maxBytes} bytes`));
      return;
    }
    this.#pending = null;
    this.#buffered = null;
    this.#bufferedSize = 0;
    if (size < bytes.length) putBack(this.#stream, bytes.subarray(size));
  }

  /** Doubles its buffer, so that a peer that sends single bytes does not make every arrival copy all earlier ones. */
  #append(chunk: Buffer): Buffer {
    const size = this.#bufferedSize + chunk.length;
    if (this.#buffered === null) this.#buffered = chunk;
    else {
      if (size > this.#buffered.length) {
        const grown = Buffer.allocUnsafe(Math.max(size, this.#buffered.length * 2));
        this.#buffered.copy(grown, 0, 0, this.#bufferedSize);
        this.#buffered = grown;
      }
      chunk.copy(this.#buffered, this.#bufferedSize);
    }
    this.#bufferedSize = size;
    return this.#buffered.length === size ? this.#buffered : this.#buffered.subarray(0, size);
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    const pending = this.#pending;
    this.#pending = null;
    this.#buffered = null;
    pending?.reject(this.#failure);
  }
}

function givenUp(): Error {
  return new DialError("aborted", "the handshake was given up");
}

function tooSlow(timeoutMs: number): Error {
  return Object.assign(new Error(`the handshake took longer than ${timeoutMs} ms`), { code: "ETIMEDOUT" });
}
