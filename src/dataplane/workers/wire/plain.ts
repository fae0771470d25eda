import { EAGAIN, EINTR } from "#platform/linux/relay-calls.ts";
import type { WireIo } from "./wire.ts";
import type { Wire } from "./wire.ts";
import { Readiness } from "./readiness.ts";

/** A kernel socket that carries the payload as it is. */
export class PlainWire extends Readiness implements Wire {
  override readable = false;
  readonly pending = false;
  readonly fd: number;
  override readonly bareSource: number;
  override readonly bareTarget: number;
  #hasWritten = false;
  #isPrompt = false;

  constructor(fd: number) {
    super();
    this.fd = this.bareSource = this.bareTarget = fd;
  }

  read({ calls }: WireIo, size: number): number {
    const bytes = calls.receive(this.fd, size);
    // Behind an end or a fault a short read does not mean that the socket is empty.
    if (bytes < size && !this.hungUp) this.readable = false;
    return bytes;
  }

  available({ calls }: WireIo): number {
    const bytes = calls.available(this.fd);
    if (bytes > 0) return bytes;
    const next = calls.peek(this.fd);
    if (next > 0) return EINTR; // it came this very moment
    if (next === EAGAIN) this.readable = false;
    return next;
  }

  write(io: WireIo, size: number): number {
    if (this.#hasWritten) this.onBulk(io);
    this.#hasWritten = true;
    const sent = io.calls.send(this.fd, size);
    // A short write says the same as EAGAIN.
    if (sent === EAGAIN || (sent >= 0 && sent < size)) this.writable = false;
    return sent;
  }

  /** The first piece never waits, and most short connections have no second: they are spared the call. */
  onBulk({ calls }: WireIo): void {
    if (this.#isPrompt) return;
    this.#isPrompt = true;
    calls.noDelay(this.fd);
  }

  flush(): number {
    return EAGAIN;
  }

  endWriting({ calls }: WireIo): number {
    return calls.endWriting(this.fd);
  }

  drop(): void {}
}
