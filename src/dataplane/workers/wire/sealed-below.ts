/** What lies below sealed messages: a socket, or a wire that is more than that. */
import { BUFFER_BYTES, EAGAIN, EINTR } from "#platform/linux/relay-calls.ts";
import type { RecentWords } from "#platform/linux/machine-words.ts";
import type { CipherMemory } from "./cipher-memory.ts";
import { Readiness } from "./readiness.ts";
import { UnsentOpening } from "./unsent-opening.ts";
import type { WireDetails } from "#core/wire-details.ts";
import type { Wire, WireIo } from "./wire.ts";
import { WireLayer } from "./wire-layer.ts";

export interface SealedBelow extends Omit<
  Wire,
  "read" | "write" | "available" | "bareSource" | "bareTarget"
> {
  /** Up to `room` bytes to the memory of the wire, so far behind its start. 0: the end. Else an errno. */
  receive(io: WireIo, at: number, room: number): number;
  /** The latest `receive` has found all that there was. */
  readonly isDry: boolean;
  /** More or less what `receive` may find. */
  available(io: WireIo): number;
  /** The first bytes of the memory of the wire: how many were taken, or an errno. */
  send(io: WireIo, size: number): number;
  /** Where those of the latest `send` lie behind it. */
  readonly sent: Uint8Array;
  /** The peer has said its end: whatever still comes means nothing. */
  onPeerEnd(io: WireIo): void;
}

export class SocketBelow extends Readiness implements SealedBelow {
  readonly fd: number;
  readonly sent: Uint8Array;
  isDry = false;
  readonly #addresses: RecentWords;
  /** Null: it is out, or there is none. */
  #opening: UnsentOpening | null;

  constructor({ wire, wireAddresses }: CipherMemory, fd: number, opening?: WireDetails["opening"]) {
    super();
    this.fd = fd;
    this.sent = wire;
    this.#addresses = wireAddresses;
    this.#opening = opening === undefined ? null : new UnsentOpening(opening.bytes, opening.afterMs);
  }

  begin(io: WireIo): void {
    this.#opening?.await(io);
  }

  get pending(): boolean {
    return this.#opening?.isDue === true;
  }

  receive({ calls }: WireIo, at: number, room: number): number {
    const got = calls.receiveAt(this.fd, this.#addresses.of(at), room);
    this.isDry = got !== EINTR && got < room;
    // Behind an end or a fault a short read does not mean that the socket is empty.
    if (this.isDry && !this.hungUp) this.readable = false;
    return got;
  }

  available({ calls }: WireIo): number {
    return calls.available(this.fd);
  }

  send(io: WireIo, size: number): number {
    return this.#opening === null ? this.#send(io, size) : this.#sendFirst(io, this.#opening, size);
  }

  #send({ calls }: WireIo, size: number): number {
    const sent = calls.sendAt(this.fd, this.#addresses.of(0), size);
    if (sent === EAGAIN || (sent >= 0 && sent < size)) this.writable = false;
    return sent;
  }

  /** In one piece: there is room for it behind what a first read becomes. */
  #sendFirst(io: WireIo, opening: UnsentOpening, size: number): number {
    const { sent: wire } = this;
    const { bytes: head } = opening;
    wire.copyWithin(head.length, 0, size);
    wire.set(head);
    const sent = this.#send(io, head.length + size);
    const behind = opening.taken(Math.max(0, sent));
    wire.copyWithin(0, head.length, head.length + size);
    if (behind >= 0) this.#opening = null;
    if (behind > 0) return behind;
    return sent < 0 && sent !== EINTR ? sent : EAGAIN;
  }

  onPeerEnd(): void {}

  /** The opening alone. */
  flush(io: WireIo): number {
    if (this.#opening === null) return EAGAIN;
    const left = this.#opening.bytes.length;
    const said = this.#sendFirst(io, this.#opening, 0);
    return left - (this.#opening?.bytes.length ?? 0) || said;
  }

  endWriting(io: WireIo): number {
    if (this.#opening !== null) {
      const said = this.#sendFirst(io, this.#opening, 0);
      if (this.#opening !== null) return said;
    }
    return io.calls.endWriting(this.fd);
  }

  drop(): void {}
}

/**
 * A wire below, which is given and gives its bytes in the thread's buffer, and may use the memory of the wire itself: what lies
 * there is put aside meanwhile.
 */
export class WireBelow extends WireLayer implements SealedBelow {
  readonly sent: Uint8Array;
  readonly #wire: Uint8Array;

  constructor({ wire, aside }: CipherMemory, inner: Wire) {
    super(inner);
    this.#wire = wire;
    this.sent = aside;
  }

  get isDry(): boolean {
    return !this.inner.readable;
  }

  receive(io: WireIo, at: number, room: number): number {
    this.sent.set(this.#wire.subarray(0, at));
    const got = this.inner.read(io, Math.min(room, BUFFER_BYTES));
    this.#wire.set(this.sent.subarray(0, at));
    if (got > 0) this.#wire.set(io.calls.buffer.subarray(0, got), at);
    return got;
  }

  available(io: WireIo): number {
    return this.inner.available(io);
  }

  send(io: WireIo, size: number): number {
    this.sent.set(this.#wire.subarray(0, size));
    let taken = 0;
    while (taken < size) {
      if (this.inner.pending && this.inner.flush(io) <= 0) break;
      if (this.inner.pending) continue;
      const piece = this.sent.subarray(taken, Math.min(size, taken + BUFFER_BYTES));
      io.calls.buffer.set(piece);
      const bytes = this.inner.write(io, piece.length);
      if (bytes <= 0) return taken === 0 ? bytes : taken;
      taken += bytes;
    }
    return taken === 0 ? EAGAIN : taken;
  }

  onPeerEnd(io: WireIo): void {
    this.onUnwanted();
    this.drain(io);
  }

  endWriting(io: WireIo): number {
    return this.inner.endWriting(io);
  }
}
