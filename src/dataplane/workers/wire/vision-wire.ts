import type { VisionLayer } from "#core/wire-state.ts";
import { EAGAIN } from "#platform/linux/relay-calls.ts";
import { RECORD_BYTES } from "#platform/linux/ssl.ts";
import { MAX_CONTENT_BYTES } from "#protocols/shared/vision-padding.ts";
import { HandshakeInspector } from "#protocols/shared/vision-inspector.ts";
import { PlainWire } from "./plain.ts";
import { BROKEN } from "./sealed-reader.ts";
import { VisionReader } from "./vision-reader.ts";
import { VisionWriter } from "./vision-writer.ts";
import type { Wire, WireIo } from "./wire.ts";
import { WireLayer } from "./wire-layer.ts";

/** TLS that reads one record at a time, and nothing behind it, until it is known to stay. */
export interface LeavableWire extends Wire {
  /** It is not left, and may read ahead. */
  stay(): void;
  /** Its `read` is called no more: what it has taken from the socket behind the last record; null: nothing. */
  leaveReading(): Uint8Array | null;
  /** Its `write` is called no more, and what is pending is the last that it says. */
  leaveWriting(): void;
}

/**
 * Blocks of Vision inside TLS, until each direction knows what it carries: TLS of its own, which goes on beside the outer one
 * over the bare socket, or none, which stays inside.
 */
export class VisionWire extends WireLayer implements Wire {
  readonly #role: VisionLayer["role"];
  /** Null: it stays. A peer that would leave it behind after all breaks the rules: neither side has seen TLS inside. */
  readonly #tls: LeavableWire | null;
  readonly #raw: PlainWire;
  readonly #reader: VisionReader;
  readonly #writer: VisionWriter;
  /** What each direction goes over. */
  #source: Wire;
  #target: Wire;

  /** `tls` lies below, perhaps with something in between; null: it is not left. */
  constructor(inner: Wire, tls: LeavableWire | null, layer: VisionLayer) {
    super(inner);
    const id = Buffer.from(layer.id);
    const inspector = new HandshakeInspector();
    this.#role = layer.role;
    this.#tls = tls;
    this.#raw = new PlainWire(inner.fd);
    this.#source = this.#target = inner;
    this.#reader = new VisionReader(id, layer.reading, (content) => inspector.see(content));
    this.#writer = new VisionWriter(id, layer, inspector);
  }

  override begin(io: WireIo): void {
    super.begin(io);
    this.#writer.begin(io);
  }

  override get readable(): boolean {
    return this.#reader.heldBytes > 0 || this.#source.readable;
  }

  override set readable(readable: boolean) {
    this.#source.readable = readable;
  }

  override get writable(): boolean {
    return this.#next.writable;
  }

  override set writable(writable: boolean) {
    this.#next.writable = writable;
  }

  /** What is sealed goes out first. */
  get #next(): Wire {
    return this.inner.pending ? this.inner : this.#target;
  }

  override get pending(): boolean {
    return this.inner.pending || this.#writer.isDue;
  }

  get bareSource(): number {
    const isBare = this.#reader.state !== "padded" && this.#reader.heldBytes === 0;
    return isBare ? this.#source.bareSource : -1;
  }

  get bareTarget(): number {
    return this.#writer.state === "padded" ? -1 : this.#target.bareTarget;
  }

  override onEvents(events: number): void {
    super.onEvents(events);
    this.#raw.onEvents(events);
  }

  override onBulk(io: WireIo): void {
    this.#target.onBulk?.(io);
  }

  read(io: WireIo, size: number): number {
    if (this.#reader.heldBytes > 0) return this.#reader.deliver(io, size);
    return this.#reader.state === "padded" ? this.#unpad(io, size) : this.#source.read(io, size);
  }

  /** To know, it has to unpad. */
  available(io: WireIo): number {
    if (this.#reader.heldBytes === 0 && this.#reader.state === "padded") {
      const bytes = this.#unpad(io, MAX_CONTENT_BYTES);
      if (bytes <= 0) return bytes;
      this.#reader.putBack(io, bytes);
    }
    return this.#reader.heldBytes > 0 ? this.#reader.heldBytes : this.#source.available(io);
  }

  #unpad(io: WireIo, size: number): number {
    const bytes = this.#reader.unpad(io, this.inner, size, this.#tls === null ? size : RECORD_BYTES);
    const { state } = this.#reader;
    if (state === "direct") return this.#leaveReading() ? bytes : BROKEN;
    if (state === "plain") {
      this.#tls?.stay();
      if (this.#role === "client" && this.#tls !== null) this.#writer.onPeerPlain();
    }
    return bytes;
  }

  /** False: it must not. */
  #leaveReading(): boolean {
    const behind = this.#tls?.leaveReading();
    if (behind === undefined) return false;
    if (behind !== null) this.#reader.hold(behind);
    this.#source = this.#raw;
    this.#raw.readable = true; // an event may have told of it already
    return true;
  }

  write(io: WireIo, size: number): number {
    if (this.#writer.state !== "padded") return this.#target.write(io, size);
    const taken = this.#writer.write(io, this.inner, size);
    if (this.#isNowDirect) this.#leaveWriting();
    return taken;
  }

  get #isNowDirect(): boolean {
    return this.#writer.state === "direct";
  }

  #leaveWriting(): void {
    this.#tls?.leaveWriting();
    this.#target = this.#raw;
  }

  override flush(io: WireIo): number {
    const isDue = !this.inner.pending && this.#writer.isDue;
    return isDue ? this.#writer.sayDue(io, this.inner) : this.inner.flush(io);
  }

  endWriting(io: WireIo): number {
    const said = this.#writer.state === "padded" ? this.#writer.sayEnd(io, this.inner) : 0;
    if (said < 0) return said;
    return this.inner.pending ? EAGAIN : this.#target.endWriting(io);
  }
}
