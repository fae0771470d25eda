import type { HeaderStage, Opening } from "#core/wire-state.ts";
import { byteAt } from "#lib/at.ts";
import { EAGAIN, EINTR } from "#platform/linux/relay-calls.ts";
import { BROKEN } from "./sealed-reader.ts";
import { UnsentOpening } from "./unsent-opening.ts";
import type { Wire, WireIo } from "./wire.ts";
import { WireLayer } from "./wire-layer.ts";

/** Of the header, the only one there is. */
const VERSION = 0;
/** What a header is skipped by at once. */
const SKIP_BYTES = 256;

/** A wire whose first bytes are not payload: a header goes out in front of ours, or comes in front of the peer's. */
export class OpeningWire extends WireLayer implements Wire {
  /** Null: it is out. */
  #ours: UnsentOpening | null;
  readonly #isOwed: boolean;
  /** Null: it was read. */
  #theirs: HeaderStage | null;

  constructor(inner: Wire, { ours, isOwed, afterMs, theirs }: Opening) {
    super(inner);
    this.#ours = ours === null ? null : new UnsentOpening(ours, afterMs);
    this.#isOwed = isOwed;
    this.#theirs = theirs?.leftBytes === 0 ? null : theirs;
  }

  override begin(io: WireIo): void {
    super.begin(io);
    this.#ours?.await(io);
  }

  override get pending(): boolean {
    return this.inner.pending || this.#ours?.isDue === true;
  }

  override flush(io: WireIo): number {
    if (this.inner.pending || this.#ours === null) return this.inner.flush(io);
    const left = this.#ours.bytes.length;
    const said = this.#writeFirst(io, this.#ours, 0);
    return said < 0 && said !== EAGAIN ? said : left - (this.#ours?.bytes.length ?? 0) || said;
  }

  get bareSource(): number {
    return this.#theirs === null ? this.inner.bareSource : -1;
  }

  get bareTarget(): number {
    return this.#ours === null ? this.inner.bareTarget : -1;
  }

  /** A peer that has nothing to say may end without its header. */
  read(io: WireIo, size: number): number {
    const bytes = this.inner.read(io, size);
    if (bytes <= 0 || this.#theirs === null) return bytes;
    const { buffer } = io.calls;
    const skipped = this.#skip(buffer, bytes, this.#theirs);
    if (skipped < 0) return skipped;
    buffer.copyWithin(0, skipped, bytes);
    return bytes - skipped || EINTR;
  }

  available(io: WireIo): number {
    while (this.#theirs !== null) {
      const bytes = this.inner.read(io, Math.min(this.#theirs.leftBytes ?? 1, SKIP_BYTES));
      const skipped = bytes > 0 ? this.#skip(io.calls.buffer, bytes, this.#theirs) : bytes;
      if (skipped <= 0) return skipped;
    }
    return this.inner.available(io);
  }

  /** How many of the first bytes of the buffer are of the header; `BROKEN`: it is none. */
  #skip(buffer: Uint8Array, bytes: number, { seenVersion, leftBytes }: HeaderStage): number {
    let at = 0;
    if (!seenVersion && byteAt(buffer, at++) !== VERSION) return BROKEN;
    const left = leftBytes ?? (at < bytes ? byteAt(buffer, at++) : null);
    const skipped = Math.min(left ?? 0, bytes - at);
    this.#theirs =
      left === skipped ? null : { seenVersion: true, leftBytes: left === null ? null : left - skipped };
    return at + skipped;
  }

  write(io: WireIo, size: number): number {
    return this.#ours === null ? this.inner.write(io, size) : this.#writeFirst(io, this.#ours, size);
  }

  /** In one piece with the payload: the first read of a direction is never as long as the buffer. */
  #writeFirst(io: WireIo, ours: UnsentOpening, size: number): number {
    const { buffer } = io.calls;
    const { bytes: head } = ours;
    if (head.length + size > buffer.length) throw new RangeError("no room for the header of a stream");
    buffer.copyWithin(head.length, 0, size);
    buffer.set(head);
    const bytes = this.inner.write(io, head.length + size);
    const behind = ours.taken(Math.max(0, bytes));
    buffer.copyWithin(0, head.length, head.length + size);
    if (behind >= 0) this.#ours = null;
    if (behind > 0) return behind;
    return bytes < 0 ? bytes : EAGAIN;
  }

  endWriting(io: WireIo): number {
    if (this.#ours !== null && this.#isOwed) {
      const said = this.#writeFirst(io, this.#ours, 0);
      if (this.#ours !== null) return said;
      if (this.pending) return EAGAIN;
    }
    return this.inner.endWriting(io);
  }
}
