import type { Wire, WireIo } from "./wire.ts";

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

  drop(io: WireIo): void {
    this.inner.drop(io);
  }
}
