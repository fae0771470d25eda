/** A stream in its own thread: its bytes go to the main thread by messages, until a relay of this thread goes on with it. */
import type { QuicStream } from "#transport/quic/streams/quic-stream.ts";
import type { FromThread } from "./messages.ts";

/** Bytes on their way to the main thread. What it does not read stays within the window that the peer was given. */
const MOST_UNTAKEN_BYTES = 32 * 1024;
/** What waits for a relay before the stream is read no more. */
const MOST_WAITING_BYTES = 512 * 1024;
/** What a piece counts for besides its bytes: peers choose how small pieces are. */
const PIECE_BYTES = 256;

export interface ThreadStreamHost {
  /** The number of the client. */
  readonly number: number;
  post(message: FromThread, given?: ArrayBuffer): void;
  /** No more of it, and nothing of it is kept. */
  onClosed(id: number): void;
}

/** Memory as large as this is given back at once: left to the collector it has the whole heap marked many times a second. */
const LARGE_BYTES = 32 * 1024;

/** A stream of QUIC gives its pieces away with all their memory. */
function release(piece: Buffer | undefined): void {
  const { buffer } = piece ?? {};
  if (buffer instanceof ArrayBuffer && buffer.byteLength >= LARGE_BYTES) buffer.transfer(0);
}

/** Called when a relay may get further. */
export interface RelayCallbacks {
  onReadable(): void;
  onWritable(): void;
  onFault(): void;
}

export class ThreadStream {
  readonly #host: ThreadStreamHost;
  readonly #stream: QuicStream;
  readonly #id: number;
  /** In order: what was posted and not taken, and, behind a lending, all that has come. */
  #pieces: Buffer[] = [];
  #pieceBytes = 0;
  /** Taken by the main thread, in all. */
  #takenBytes = 0;
  #isBegun = false;
  #hasEnd = false;
  #failure: Error | null = null;
  #relay: RelayCallbacks | null = null;
  readonly #onWritten = (): void => {
    if (this.#stream.writableLength === 0) this.#relay?.onWritable();
  };

  /** `id`: as the main thread calls it. */
  constructor(host: ThreadStreamHost, stream: QuicStream, id: number) {
    this.#host = host;
    this.#stream = stream;
    this.#id = id;
    if (stream.receive === null) this.#begin();
    stream.once("end", () => this.#onEnd());
    stream.once("error", (error) => (this.#failure = error));
    stream.once("close", () => this.#onClose());
  }

  /** Its reader wants something. */
  #begin(): void {
    this.#isBegun = true;
    this.#stream.on("data", (bytes: Buffer) => this.#onData(bytes));
  }

  #onData(bytes: Buffer): void {
    this.#pieces.push(bytes);
    this.#pieceBytes += bytes.length;
    if (this.#relay === null) this.#post(bytes);
    else this.#relay.onReadable();
    this.#slowDown();
  }

  #post(bytes: Buffer): void {
    const copy = new Uint8Array(bytes);
    this.#say({ op: "data", ...this.#name, bytes: copy }, copy.buffer);
  }

  #slowDown(): void {
    const most = this.#relay === null ? MOST_UNTAKEN_BYTES : MOST_WAITING_BYTES;
    const heldBytes = this.#pieceBytes + PIECE_BYTES * this.#pieces.length;
    if (heldBytes >= most) this.#stream.pause();
    else if (this.#stream.isPaused() && heldBytes <= most / 2) this.#stream.resume();
  }

  #onEnd(): void {
    this.#hasEnd = true;
    if (this.#stream.receive === null) return;
    if (this.#relay === null) this.#say({ op: "ended", ...this.#name });
    else this.#relay.onReadable();
  }

  #onClose(): void {
    const { receive, send } = this.#stream;
    const isCut = this.#failure !== null || (receive !== null && !this.#hasEnd);
    if (isCut) this.#failure ??= new Error("the stream was closed");
    if (this.#relay === null) this.#say({ op: "gone", ...this.#name, error: this.#failure?.message ?? null });
    else if (isCut || send?.isEnded === false) this.#relay.onFault();
    this.#host.onClosed(this.#id);
  }

  get #name(): { readonly client: number; readonly stream: number } {
    return { client: this.#host.number, stream: this.#id };
  }

  #say(message: FromThread, given?: ArrayBuffer): void {
    this.#host.post(message, given);
  }

  /** The main thread's reader has taken so many more; the first time it only says that it reads. */
  onTook(bytes: number): void {
    if (this.#relay !== null) return; // it was lent meanwhile, and what was taken by then was said
    this.#dropTo(this.#takenBytes + bytes);
    if (this.#isBegun) this.#slowDown();
    else this.#begin();
  }

  #dropTo(total: number): void {
    this.#drop(total - this.#takenBytes);
    this.#takenBytes = total;
  }

  #drop(bytes: number): void {
    let left = bytes;
    for (let first = this.#pieces[0]; first !== undefined && left > 0; first = this.#pieces[0]) {
      const size = Math.min(left, first.length);
      if (size === first.length) this.#pieces.shift();
      else this.#pieces[0] = first.subarray(size);
      this.#pieceBytes -= size;
      left -= size;
    }
  }

  write(bytes: Uint8Array): void {
    const { length } = bytes;
    if (this.#stream.destroyed) return;
    this.#stream.write(bytes, () => {
      if (!this.#stream.destroyed) this.#say({ op: "wrote", ...this.#name, bytes: length });
    });
  }

  finish(): void {
    if (!this.#stream.destroyed) this.#stream.end(() => this.#say({ op: "finished", ...this.#name }));
  }

  destroy(code: number, isFault: boolean): void {
    this.#stream.abortCode = code;
    this.#stream.destroy(isFault ? new Error("it was ended here") : undefined);
  }

  /** A relay goes on with it; `takenBytes`: all that the main thread has taken of it. Null: it is gone. */
  lend(takenBytes: number): ThreadStream | null {
    if (this.#stream.destroyed || this.#relay !== null) return null;
    this.#dropTo(takenBytes);
    this.#relay = { onReadable() {}, onWritable() {}, onFault() {} };
    if (!this.#isBegun) this.#begin();
    this.#stream.resume();
    return this;
  }

  /** Of the relay. */
  set callbacks(callbacks: RelayCallbacks) {
    this.#relay = callbacks;
  }

  /** Bytes that wait; `hasEnded` says what it means where there are none. */
  get waitingBytes(): number {
    return this.#pieceBytes;
  }

  get hasEnded(): boolean {
    return this.#hasEnd;
  }

  get hasFailed(): boolean {
    return this.#failure !== null;
  }

  /** Puts up to `size` bytes at the start of `into`. */
  read(into: Uint8Array, size: number): number {
    let at = 0;
    for (let first = this.#pieces[0]; first !== undefined && at < size; first = this.#pieces[0]) {
      const room = size - at;
      const isWhole = first.length <= room;
      into.set(isWhole ? first : first.subarray(0, room), at);
      at += isWhole ? first.length : room;
      if (isWhole) release(this.#pieces.shift());
      else this.#pieces[0] = first.subarray(room);
    }
    this.#pieceBytes -= at;
    this.#slowDown();
    return at;
  }

  /** What is put in is thrown away: the peer reads no more, or all is over. */
  get isOver(): boolean {
    return this.#stream.destroyed;
  }

  get hasRoom(): boolean {
    return this.#stream.writableLength === 0 && !this.#stream.destroyed;
  }

  /** Only with room: it is copied at once. */
  put(bytes: Uint8Array): void {
    this.#stream.write(bytes, this.#onWritten);
  }

  endPutting(): void {
    if (!this.#stream.destroyed) this.#stream.end();
  }

  /** A stream that has not ended both ways is reset. */
  drop(): void {
    this.#stream.destroy();
  }
}
