import type { CipherMemory } from "./cipher-memory.ts";
import type { SealedBelow } from "./sealed-below.ts";
import { BROKEN, type SealedReader } from "./sealed-reader.ts";
import type { SealedWriter } from "./sealed-writer.ts";
import type { Wire, WireIo } from "./wire.ts";

export interface SealedParts {
  readonly memory: CipherMemory;
  readonly below: SealedBelow;
  /** libcrypto's, and the wire's own from here on. */
  readonly contexts: { sealing: bigint; opening: bigint };
  readonly reader: SealedReader;
  readonly writer: SealedWriter;
}

/** Sealed messages whose end is that of what lies below. */
export class SealedWire implements Wire {
  readonly bareSource = -1;
  readonly bareTarget = -1;
  readonly #parts: SealedParts;
  /** Something can be had of what was received already; at first of what came before there was a wire. */
  #hasMore = true;

  constructor(parts: SealedParts) {
    this.#parts = parts;
  }

  get fd(): number {
    return this.#parts.below.fd;
  }

  get hungUp(): boolean {
    return this.#parts.below.hungUp;
  }

  get readable(): boolean {
    return this.#hasMore || this.#parts.below.readable;
  }

  get writable(): boolean {
    return this.#parts.below.writable;
  }

  get pending(): boolean {
    return this.#parts.writer.pending || this.#parts.below.pending;
  }

  begin(io: WireIo): void {
    this.#parts.below.begin?.(io);
  }

  read(io: WireIo, size: number): number {
    return this.#found(this.#parts.reader.read(io, size));
  }

  available(io: WireIo): number {
    return this.#found(this.#parts.reader.available(io));
  }

  #found(bytes: number): number {
    if (bytes === BROKEN) this.onBroken();
    this.#hasMore = !this.#parts.reader.isDry;
    return bytes;
  }

  /** The peer has broken the rules. */
  protected onBroken(): void {}

  write(io: WireIo, size: number): number {
    return this.#parts.writer.write(io, size);
  }

  flush(io: WireIo): number {
    const { below, writer } = this.#parts;
    return below.pending ? below.flush(io) : writer.flush(io);
  }

  endWriting(io: WireIo): number {
    const { below, reader } = this.#parts;
    if (reader.hasEnded) below.onPeerEnd(io);
    return below.endWriting(io);
  }

  onBulk(io: WireIo): void {
    this.#parts.below.onBulk?.(io);
  }

  onUnwanted(): void {
    this.#parts.below.onUnwanted?.();
  }

  onEvents(events: number): void {
    const { below, reader } = this.#parts;
    below.onEvents(events);
    if (below.readable) reader.wake();
  }

  /** The library wipes the keys. */
  drop(io: WireIo): void {
    this.#parts.writer.drop(io);
    this.#parts.memory.evp.free(this.#parts.contexts);
    this.#parts.below.drop(io);
  }
}
