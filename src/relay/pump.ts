/** Moves the bytes of one TCP conversation, by hand: data, write, drain (the figures are in style and ADR 0040). */
import type { Duplex } from "node:stream";
import type { Meter } from "#core/meter.ts";
import { abortStream } from "#core/stream.ts";
import { isPlainSocket } from "./carrier.ts";
import type { Carrier, CarryOptions } from "./carrier.ts";
import { Half } from "./half.ts";
import type { Idle } from "./sweep.ts";

export interface RelayOptions extends CarryOptions {
  readonly carrier: Carrier | null;
}

/**
 * Owns both streams from here and settles when both are closed; never rejects, because how a conversation ends is an
 * outcome. A half-close is passed on and the other direction goes on; a fault of one side (RST, a cut TLS stream)
 * becomes a fault of the other.
 */
export function relay(client: Duplex, remote: Duplex, meter: Meter, options: RelayOptions): Promise<void> {
  const { carrier } = options;
  if (carrier !== null && isPlainSocket(client) && isPlainSocket(remote)) {
    const carried = carrier.carry({ client, remote }, meter, options);
    if (carried !== null) return carried;
  }
  return new Promise((done) => new Pump(client, remote, meter, options, done).start());
}

class Pump implements Idle {
  activeAtMs = 0;
  idleMs: number;
  readonly #client: Duplex;
  readonly #remote: Duplex;
  readonly #options: CarryOptions;
  readonly #done: () => void;
  readonly #up: Half;
  readonly #down: Half;
  readonly #onAbort = (): void => this.#fail(new Error("the conversation was closed"));
  #settled = false;

  constructor(client: Duplex, remote: Duplex, meter: Meter, options: CarryOptions, done: () => void) {
    this.#client = client;
    this.#remote = remote;
    this.#options = options;
    this.#done = done;
    this.idleMs = options.idleMs;
    const env = {
      meter,
      onBytes: options.onBytes,
      onActive: () => void (this.activeAtMs = options.sweep.nowMs),
      onEnded: () => void (this.idleMs = Math.min(this.idleMs, options.halfClosedIdleMs)),
    };
    this.#up = new Half("upload", client, remote, env);
    this.#down = new Half("download", remote, client, env);
  }

  start(): void {
    const { signal, sweep } = this.#options;
    this.#watch(this.#client, this.#remote);
    this.#watch(this.#remote, this.#client);
    if (signal.aborted || this.#client.destroyed || this.#remote.destroyed) return this.#onAbort();
    signal.addEventListener("abort", this.#onAbort);
    sweep.add(this);
    this.#up.start();
    this.#down.start();
  }

  expire(): void {
    this.#client.destroy();
    this.#remote.destroy();
    this.#settle();
  }

  #watch(stream: Duplex, other: Duplex): void {
    stream.on("error", (error) => {
      abortStream(other, error);
      this.#settle();
    });
    stream.once("finish", () => this.#finishIfComplete());
    stream.once("close", () => {
      // A stream that ended both ways closes by itself while the other may still be flushing.
      if (stream.readableEnded && stream.writableFinished) return this.#finishIfComplete();
      if (!this.#settled) this.#fail(new Error("the other side was cut off"));
    });
  }

  #finishIfComplete(): void {
    const flushed = this.#client.writableFinished && this.#remote.writableFinished;
    if (!flushed || !this.#up.ended || !this.#down.ended) return;
    this.#client.destroy();
    this.#remote.destroy();
    this.#settle();
  }

  #fail(error: Error): void {
    abortStream(this.#client, error);
    abortStream(this.#remote, error);
    this.#settle();
  }

  #settle(): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#options.sweep.remove(this);
    this.#options.signal.removeEventListener("abort", this.#onAbort);
    this.#up.stop();
    this.#down.stop();
    this.#done();
  }
}
