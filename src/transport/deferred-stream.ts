import { Duplex } from "node:stream";
import { LOWER_DETACHED, LOWER_STREAM } from "#core/handover.ts";
import { abortStream } from "#core/stream.ts";
import { asError } from "#core/errors.ts";

/**
 * The result of opening: the stream for everything further, and the part of the first bytes that still has to be
 * written to it.
 */
export interface Opened {
  readonly stream: Duplex;
  readonly rest: Buffer;
}

const EMPTY = Buffer.alloc(0);

/**
 * A stream that is opened by its first write, so that the first bytes can travel in the opening itself. Where nothing
 * is written for `waitMs`, it opens without them: the far side may be the one that speaks first. Writes wait meanwhile.
 */
export class DeferredStream extends Duplex {
  readonly #open: (first: Buffer) => Promise<Opened>;
  readonly #timer: NodeJS.Timeout;
  #opening: Promise<void> | null = null;
  #stream: Duplex | null = null;
  #afterDrain: (() => void) | null = null;
  /** The far side has said its end. */
  #hasEnded = false;
  #isHandedOver = false;

  constructor(open: (first: Buffer) => Promise<Opened>, waitMs: number) {
    super({ allowHalfOpen: true });
    this.#open = open;
    this.#timer = setTimeout(() => void this.#start(EMPTY), waitMs);
  }

  [LOWER_STREAM](): Duplex | null {
    const isBusy = this.destroyed || this.#hasEnded || this.writableEnded || this.#afterDrain !== null;
    return isBusy ? null : this.#stream;
  }

  [LOWER_DETACHED](): void {
    this.#isHandedOver = true;
  }

  override _read(): void {
    this.#stream?.resume();
  }

  override _write(bytes: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    if (this.#stream !== null) this.#forward(bytes, done);
    else if (this.#opening === null) void this.#afterOpening(bytes, () => done());
    else void this.#afterOpening(EMPTY, () => this.#forward(bytes, done));
  }

  override _final(done: (error?: Error | null) => void): void {
    void this.#afterOpening(EMPTY, () => this.#stream?.end(done));
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    clearTimeout(this.#timer);
    if (this.#stream !== null && error !== null) abortStream(this.#stream, error);
    else this.#stream?.destroy();
    done(error);
  }

  async #afterOpening(first: Buffer, then: () => void): Promise<void> {
    await this.#start(first);
    then();
  }

  /** Never rejects: a failure destroys the stream. */
  #start(first: Buffer): Promise<void> {
    clearTimeout(this.#timer);
    this.#opening ??= this.#open(first).then(
      ({ stream, rest }) => this.#adopt(stream, rest),
      (error) => void this.destroy(asError(error)),
    );
    return this.#opening;
  }

  #adopt(stream: Duplex, rest: Buffer): void {
    this.#stream = stream;
    if (this.destroyed) return void stream.on("error", () => {}).destroy(); // hung up meanwhile
    stream.on("data", (bytes: Buffer) => {
      if (!this.push(bytes)) stream.pause();
    });
    stream.on("end", () => {
      this.#hasEnded = true;
      this.push(null);
    });
    stream.on("error", (error) => this.destroy(error));
    stream.on("close", () => {
      if (!stream.readableEnded && !this.#isHandedOver)
        this.destroy(new Error("the connection below closed before its end"));
    });
    stream.on("drain", () => {
      const done = this.#afterDrain;
      this.#afterDrain = null;
      done?.();
    });
    if (rest.length > 0) stream.write(rest);
  }

  #forward(bytes: Buffer, done: () => void): void {
    if (this.#stream === null || this.#stream.write(bytes)) done();
    else this.#afterDrain = done;
  }
}
