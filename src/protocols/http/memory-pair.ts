import { Duplex } from "node:stream";

const HIGH_WATER_MARK = 64 * 1024;

/**
 * Two streams, each the other's far end, in memory. A direction holds at most two high-water marks and one piece; then
 * the writer waits. Destroying one end before it has written its last destroys the other.
 */
export function memoryPair(): readonly [near: Duplex, far: Duplex] {
  // The near end is for a library that takes a connection as over when its peer ends; the far end keeps half-close.
  const near = new MemoryEnd({ allowHalfOpen: false });
  const far = new MemoryEnd({ allowHalfOpen: true });
  near.join(far);
  far.join(near);
  return [near, far];
}

type Done = (error?: Error | null) => void;

class MemoryEnd extends Duplex {
  #peer!: MemoryEnd;
  /** Lets the peer write on. */
  #waiting: Done | null = null;

  constructor({ allowHalfOpen }: { allowHalfOpen: boolean }) {
    super({ allowHalfOpen, readableHighWaterMark: HIGH_WATER_MARK, writableHighWaterMark: HIGH_WATER_MARK });
  }

  join(peer: MemoryEnd): void {
    this.#peer = peer;
  }

  /** For libraries that expect a socket: no handle here keeps the process alive. */
  ref(): this {
    return this;
  }

  override _read(): void {
    const done = this.#waiting;
    this.#waiting = null;
    done?.();
  }

  override _write(chunk: Buffer, _encoding: string, done: Done): void {
    const peer = this.#peer;
    if (peer.destroyed) done(broken());
    else if (peer.push(chunk)) done();
    else peer.#waiting = done;
  }

  override _final(done: Done): void {
    const peer = this.#peer;
    if (!peer.destroyed) {
      peer.push(null);
      peer.read(0); // an idle end without a reader must notice it, as a socket does
    }
    done();
  }

  override _destroy(error: Error | null, done: Done): void {
    const waiting = this.#waiting;
    this.#waiting = null;
    waiting?.(broken());
    if (!this.writableFinished) this.#peer.destroy();
    done(error);
  }
}

function broken(): Error {
  return Object.assign(new Error("the other end of the stream is gone"), { code: "EPIPE" });
}
