import { BUFFER_BYTES, EINTR } from "#platform/linux/relay-calls.ts";
import type { Wire, WireIo } from "./wire.ts";

/** How often a peer that has said its end is read on, so that what it adds does not become a reset. */
const MOST_DRAINS = 16;

/** What lies over a wire and passes on to it all but the bytes. */
export abstract class WireLayer {
  protected readonly inner: Wire;

  constructor(inner: Wire) {
    this.inner = inner;
  }

  get readable(): boolean {
    return this.inner.readable;
  }

  set readable(readable: boolean) {
    this.inner.readable = readable;
  }

  get writable(): boolean {
    return this.inner.writable;
  }

  set writable(writable: boolean) {
    this.inner.writable = writable;
  }

  get hungUp(): boolean {
    return this.inner.hungUp;
  }

  get pending(): boolean {
    return this.inner.pending;
  }

  get fd(): number {
    return this.inner.fd;
  }

  begin(io: WireIo): void {
    this.inner.begin?.(io);
  }

  onBulk(io: WireIo): void {
    this.inner.onBulk?.(io);
  }

  onUnwanted(): void {
    this.inner.onUnwanted?.();
  }

  flush(io: WireIo): number {
    return this.inner.flush(io);
  }

  onEvents(events: number): void {
    this.inner.onEvents(events);
  }

  protected drain(io: WireIo): void {
    for (let reads = 0; reads < MOST_DRAINS && this.inner.readable; reads++) {
      const bytes = this.inner.read(io, BUFFER_BYTES);
      if (bytes <= 0 && bytes !== EINTR) return;
    }
  }

  drop(io: WireIo): void {
    this.inner.drop(io);
  }
}
