/** Moves the bytes of one TCP connection by data, write and drain (docs/adr/0015). */
import type { Duplex } from "node:stream";
import type { Direction, Meter } from "#core/meter.ts";
import { detachable, IN_THREAD } from "#core/handover.ts";
import { abortStream } from "#core/stream.ts";
import type { RelayBackend, RelayBackendOptions, RelayPair } from "#dataplane/backend.ts";
import { PumpDirection, type PumpDirectionEnv } from "./pump-direction.ts";
import type { IdleEntry } from "#dataplane/idle-timers.ts";

export interface RelayOptions extends RelayBackendOptions {
  readonly backend: RelayBackend | null;
  /** Called at most once: `remote` has failed, and not because of us. */
  readonly onRemoteLost?: (error: Error) => void;
}

/**
 * Owns both streams from here and settles when both are closed; never rejects, because the way a connection ends is an
 * outcome. A half-close is passed on and the other direction continues; a fault of one side (RST, a cut TLS stream)
 * becomes a fault of the other, unless that side had ended before: then the other gets all bytes that were sent to it,
 * and the end.
 */
export function relay(client: Duplex, remote: Duplex, meter: Meter, options: RelayOptions): Promise<void> {
  const { backend } = options;
  if (backend !== null && (backend.afterBytes === 0 || IN_THREAD in client)) {
    const pair = pairOf(client, remote);
    const carried = pair === null ? null : backend.relay(pair, meter, options);
    if (carried !== null) return carried;
  }
  return new Promise((done) => new Pump(client, remote, meter, options, done).start());
}

/** Null: one of them cannot be gone on with now, and perhaps never. */
function pairOf(client: Duplex, remote: Duplex): RelayPair | null {
  const near = detachable(client);
  const far = near === null ? null : detachable(remote);
  return near === null || far === null
    ? null
    : { client: { stream: client, detachable: near }, remote: { stream: remote, detachable: far } };
}

/** Factor by which a connection stays here longer each time that a backend returns it. */
const GROWTH = 4;

class Pump implements IdleEntry {
  activeAtMs = 0;
  idleMs: number;
  #client: Duplex;
  #remote: Duplex;
  readonly #meter: Meter;
  readonly #options: RelayOptions;
  readonly #done: () => void;
  /** Until it is offered to the carrier; Infinity: never again. */
  #youngBytes: number;
  readonly #env: PumpDirectionEnv;
  #up: PumpDirection;
  #down: PumpDirection;
  /** Of those that a carrier has given back. */
  #returns = 0;
  readonly #onAbort = (): void => this.#fail(new Error("the connection was closed"));
  #settled = false;

  constructor(client: Duplex, remote: Duplex, meter: Meter, options: RelayOptions, done: () => void) {
    this.#client = client;
    this.#remote = remote;
    this.#meter = meter;
    this.#youngBytes = options.backend?.afterBytes || Infinity;
    this.#options = options;
    this.#done = done;
    this.idleMs = options.idleMs;
    this.#env = {
      meter,
      onBytes: (direction: Direction, bytes: number) => {
        options.onBytes(direction, bytes);
        this.#youngBytes -= bytes;
      },
      onActive: () => this.#active(),
      onMoved: () => {
        if (this.#youngBytes <= 0) this.#handOver();
      },
      onEnded: () => {
        this.idleMs = Math.min(this.idleMs, options.halfClosedIdleMs);
        this.#active(); // however long it was silent before, the other side has its time to answer
      },
    };
    this.#up = new PumpDirection("upload", client, remote, this.#env);
    this.#down = new PumpDirection("download", remote, client, this.#env);
  }

  start(): void {
    this.#watch(this.#client);
    this.#watch(this.#remote);
    this.#begin();
  }

  #begin(): void {
    const { signal, timers } = this.#options;
    if (signal.aborted || this.#client.destroyed || this.#remote.destroyed) return this.#onAbort();
    signal.addEventListener("abort", this.#onAbort);
    timers.add(this);
    this.#up.start();
    this.#down.start();
  }

  #active(): void {
    this.#options.timers.touch(this);
  }

  /** Older than a sweep. */
  look(): void {
    if (this.#youngBytes !== Infinity && this.#returns === 0 && this.#options.timers.hasTime)
      this.#handOver();
  }

  /** At a moment when neither side has anything under way; else at a later one. */
  #handOver(): void {
    const { backend } = this.#options;
    if (this.#settled || backend === null || !this.#up.isClear || !this.#down.isClear) return;
    const pair = pairOf(this.#client, this.#remote);
    if (pair === null) return;
    this.#youngBytes = Infinity;
    this.#settled = true; // the backend destroys the runtime's streams, which is not the end of the connection
    const resume: RelayPair["resume"] = (side) => this.#resume(side, backend);
    const carried = backend.relay({ ...pair, resume }, this.#meter, this.#options);
    if (carried === null) this.#settled = false;
    else {
      this.#stop();
      void carried.then(this.#done);
    }
  }

  /** The backend could not continue; it is offered the connection again only after far more bytes. */
  #resume(side: { client?: Duplex; remote?: Duplex }, { afterBytes }: RelayBackend): void {
    this.#returns++;
    this.#youngBytes = afterBytes * GROWTH ** this.#returns;
    this.#up.leave();
    this.#down.leave();
    const { client = this.#client, remote = this.#remote } = side;
    this.#client = client;
    this.#remote = remote;
    this.#up = new PumpDirection("upload", client, remote, this.#env);
    this.#down = new PumpDirection("download", remote, client, this.#env);
    this.#settled = false;
    this.#watch(side.client ?? remote);
    this.#begin();
  }

  expire(): void {
    this.#options.onSilent?.();
    this.#client.destroy();
    this.#remote.destroy();
    this.#settle();
  }

  #watch(stream: Duplex): void {
    stream.on("error", (error) => this.#lose(stream, error));
    stream.once("finish", () => this.#finishIfComplete());
    stream.once("close", () => this.#lose(stream, new Error("the other side was cut off")));
  }

  /** No byte moves through it any more. What it had sent before its end is still delivered to the other one. */
  #lose(stream: Duplex, error: Error): void {
    if (this.#settled || this.#isPast(stream)) return;
    const isClient = stream === this.#client;
    const [from, into] = isClient ? [this.#up, this.#down] : [this.#down, this.#up];
    if (!from.ended) {
      if (!isClient) this.#options.onRemoteLost?.(error);
      abortStream(isClient ? this.#remote : this.#client, error);
      return this.#settle();
    }
    into.abandon();
    this.#finishIfComplete();
  }

  /** Its socket left it and came back to another one. */
  #isPast(stream: Duplex): boolean {
    return stream !== this.#client && stream !== this.#remote;
  }

  #finishIfComplete(): void {
    const delivered = this.#up.delivered && this.#down.delivered;
    if (!delivered || !this.#up.ended || !this.#down.ended) return;
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
    this.#stop();
    this.#done();
  }

  #stop(): void {
    this.#options.timers.remove(this);
    this.#options.signal.removeEventListener("abort", this.#onAbort);
    this.#up.stop();
    this.#down.stop();
  }
}
