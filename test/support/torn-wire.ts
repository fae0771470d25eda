/** A connection in memory whose bytes arrive as the test wants: cut, in single bytes, held together, or broken off. */
import { randomBytes } from "node:crypto";
import { Duplex } from "node:stream";

/** What becomes of one direction. */
export interface Tear {
  /** Bytes that arrive together at most; the next ones come a turn of the event loop later. */
  readonly pieceBytes?: number;
  /** The bytes before this place arrive a few turns before those behind it. */
  readonly cutAt?: number;
  /** Here it ends, whatever else is written. */
  readonly endAt?: number;
  /** From here on other bytes come in place of what was written, and then the end. */
  readonly spoilAt?: number;
  /** All that is written within so long arrives at once. */
  readonly holdMs?: number;
  /** Called with what arrives. */
  readonly watch?: (bytes: Buffer) => void;
}

/** Long enough for what waits for a promise, a microtask or `nextTick`. */
const TURNS_AT_A_CUT = 3;
const SPOILT_BYTES = 200;

class Lane {
  readonly #tear: Tear;
  readonly #queue: Buffer[] = [];
  #deliver: (bytes: Buffer | null) => void = () => {};
  #passed = 0;
  #turns = 0;
  #moving = false;
  #ended = false;
  #over = false;
  #hold: NodeJS.Timeout | null = null;

  constructor(tear: Tear) {
    this.#tear = tear;
  }

  into(deliver: (bytes: Buffer | null) => void): void {
    this.#deliver = deliver;
  }

  write(bytes: Buffer): void {
    if (this.#over || bytes.length === 0) return;
    this.#queue.push(Buffer.from(bytes));
    const { holdMs } = this.#tear;
    if (holdMs === undefined) return this.#move();
    if (this.#hold !== null) clearTimeout(this.#hold);
    this.#hold = setTimeout(() => this.#move(), holdMs);
  }

  end(): void {
    this.#ended = true;
    this.#move();
  }

  #move(): void {
    if (this.#moving || this.#over) return;
    this.#moving = true;
    setImmediate(() => {
      this.#moving = false;
      if (this.#turns > 0) this.#turns--;
      else this.#pass();
      if (!this.#over && (this.#queue.length > 0 || this.#ended)) this.#move();
    });
  }

  #pass(): void {
    const { pieceBytes = Infinity, cutAt = -1, endAt = Infinity, spoilAt = Infinity, watch } = this.#tear;
    const waiting = Buffer.concat(this.#queue);
    this.#queue.length = 0;
    const next = [
      pieceBytes,
      ...[cutAt, endAt, spoilAt].filter((at) => at >= this.#passed).map((at) => at - this.#passed),
    ];
    const piece = waiting.subarray(0, Math.min(...next.filter((size) => size > 0)));
    if (this.#passed < endAt && this.#passed < spoilAt && piece.length > 0) {
      this.#passed += piece.length;
      watch?.(Buffer.from(piece)); // the receiver may decode it in place
      this.#deliver(piece);
      if (piece.length < waiting.length) this.#queue.push(waiting.subarray(piece.length));
      if (this.#passed === cutAt) this.#turns = TURNS_AT_A_CUT;
    }
    if (this.#passed >= spoilAt && !this.#over) this.#deliver(randomBytes(SPOILT_BYTES));
    if (this.#passed >= endAt || this.#passed >= spoilAt || (this.#ended && this.#queue.length === 0)) {
      this.#over = true;
      this.#deliver(null);
    }
  }
}

/** Looks enough like a kernel socket for a listener. */
class End extends Duplex {
  readonly remoteAddress = "127.0.0.1";
  readonly remotePort: number;
  readonly localAddress = "127.0.0.1";
  readonly localPort = 443;
  readonly #out: Lane;
  #far: End | null = null;

  constructor(incoming: Lane, out: Lane, remotePort: number) {
    super({ allowHalfOpen: true });
    this.#out = out;
    this.remotePort = remotePort;
    incoming.into((bytes) => {
      if (!this.destroyed && !this.readableEnded) this.push(bytes);
    });
  }

  join(far: End): void {
    this.#far = far;
  }

  setNoDelay(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }

  setTimeout(): this {
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  override _read(): void {}

  override _write(bytes: Buffer, _encoding: string, done: () => void): void {
    if (this.#far?.destroyed === true) setImmediate(() => this.reset());
    else this.#out.write(bytes);
    done();
  }

  override _final(done: () => void): void {
    this.#out.end();
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (error === null) this.#out.end();
    else setImmediate(() => this.#far?.reset());
    done(error);
  }

  reset(): void {
    if (!this.destroyed) this.destroy(Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" }));
  }
}

/** The two ends; `up` is what the first one writes, `port` what the second one sees as its peer's. */
export function tornWire(up: Tear, down: Tear, port: number): readonly [client: Duplex, server: Duplex] {
  const [upward, downward] = [new Lane(up), new Lane(down)];
  const client = new End(downward, upward, port);
  const server = new End(upward, downward, port);
  client.join(server);
  server.join(client);
  return [client, server];
}
