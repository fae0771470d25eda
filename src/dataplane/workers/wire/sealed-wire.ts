import type { CipherMemory } from "./cipher-memory.ts";
import { Readiness } from "./readiness.ts";
import { BROKEN, type SealedReader } from "./sealed-reader.ts";
import type { SealedWriter } from "./sealed-writer.ts";
import type { Wire, WireIo } from "./wire.ts";

export interface SealedParts {
  readonly memory: CipherMemory;
  readonly fd: number;
  /** libcrypto's, and the wire's own from here on. */
  readonly contexts: { sealing: bigint; opening: bigint };
  readonly reader: SealedReader;
  readonly writer: SealedWriter;
}

/** A socket with sealed messages, whose end is that of TCP. */
export class SealedWire extends Readiness implements Wire {
  readonly fd: number;
  readonly #parts: SealedParts;

  constructor(parts: SealedParts) {
    super();
    this.fd = parts.fd;
    this.#parts = parts;
  }

  get pending(): boolean {
    return this.#parts.writer.pending;
  }

  read(io: WireIo, size: number): number {
    return this.#found(this.#parts.reader.read(io, size));
  }

  available(io: WireIo): number {
    return this.#found(this.#parts.reader.available(io));
  }

  /** A short read says that there is no more, unless it is the last. */
  #found(bytes: number): number {
    if (bytes === BROKEN) this.onBroken();
    if (!this.#parts.reader.isDry) this.readable = true; // an earlier read in the same turn may have found nothing
    else if (!this.hungUp) this.readable = false;
    return bytes;
  }

  /** The peer has broken the rules. */
  protected onBroken(): void {}

  write(io: WireIo, size: number): number {
    const taken = this.#parts.writer.write(io, size);
    this.writable = !this.#parts.writer.pending;
    return taken;
  }

  flush(io: WireIo): number {
    const sent = this.#parts.writer.flush(io);
    if (this.#parts.writer.pending) this.writable = false;
    return sent;
  }

  endWriting({ calls }: WireIo): number {
    return calls.endWriting(this.fd);
  }

  override onEvents(events: number): void {
    super.onEvents(events);
    if (this.readable) this.#parts.reader.wake();
  }

  /** The library wipes the keys. */
  drop(io: WireIo): void {
    this.#parts.writer.drop(io);
    this.#parts.memory.evp.free(this.#parts.contexts);
  }
}
