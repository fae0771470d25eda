import type { PaddingState, VisionLayer } from "#core/handover.ts";
import {
  type Command,
  CONTINUE,
  DIRECT,
  encodeBlock,
  END,
  MAX_CONTENT_BYTES,
} from "#protocols/shared/vision-padding.ts";
import { type HandshakeInspector, PaddingEnd } from "#protocols/shared/vision-inspector.ts";
import { BROKEN } from "./sealed-reader.ts";
import { UnsentOpening } from "./unsent-opening.ts";
import type { Wire, WireIo } from "./wire.ts";

const NOTHING = new Uint8Array(0);

/** Pads what goes to the peer, each block in a record of its own as peers expect it, until it is known what is inside. */
export class VisionWriter {
  /** What follows is neither padded nor, where it is `direct`, inside TLS. */
  state: "padded" | "plain" | "direct" = "padded";
  readonly #id: Buffer;
  readonly #inspector: HandshakeInspector;
  /** Null: TLS below stays, and the next block is the last. */
  readonly #end: PaddingEnd | null;
  /** Null: it is out. */
  #opening: UnsentOpening | null = null;
  #isFirst = false;
  /** The last block is to go out though there is nothing to put into it. */
  #owesEnd = false;
  /** Of a piece that was looked at: what still goes in blocks, and how these end. */
  #left = 0;
  #command: Command = END;

  constructor(id: Buffer, { mayLeave, writing }: VisionLayer, inspector: HandshakeInspector) {
    this.#id = id;
    this.#inspector = inspector;
    this.#end = mayLeave ? new PaddingEnd(inspector) : null;
    if (writing === null) this.state = "plain";
    else this.#begin(writing);
  }

  #begin({ opening, afterMs, isFirst }: PaddingState): void {
    this.#isFirst = isFirst;
    if (opening.length > 0) this.#opening = new UnsentOpening(opening, afterMs);
  }

  /** Of the opening, which does not wait for ever. */
  begin(io: WireIo): void {
    this.#opening?.await(io);
  }

  /** A block is to go out that carries nothing: `sayDue`. */
  get isDue(): boolean {
    return this.#owesEnd || this.#opening?.isDue === true;
  }

  /**
   * The peer has seen that there is no TLS inside: who only reads says so, too, for a peer whose event loop has the connection
   * waits for it.
   */
  onPeerPlain(): void {
    if (this.state === "padded" && this.#left === 0 && !this.#inspector.isTls12OrAbove) this.#owesEnd = true;
  }

  /** How many bytes went out, or an errno. */
  sayDue(io: WireIo, below: Wire): number {
    const isEnd = this.#owesEnd;
    const sent = this.#writeBlock(io, below, isEnd ? END : CONTINUE, NOTHING, !isEnd);
    if (isEnd) this.#stop("plain");
    return sent;
  }

  /** As `Wire.write`, while the state is `padded`; with the state another one, what was not taken goes the new way. */
  write(io: WireIo, below: Wire, size: number): number {
    const { buffer } = io.calls;
    const content = Buffer.from(buffer.subarray(0, size));
    if (this.#left === 0) this.#look(content);
    let at = 0;
    do {
      const piece = content.subarray(at, at + Math.min(this.#left, MAX_CONTENT_BYTES));
      const command = piece.length === this.#left ? this.#command : CONTINUE;
      const sent = this.#writeBlock(io, below, command, piece, this.#inspector.isTls);
      if (sent < 0) return sent;
      at += piece.length;
      this.#left -= piece.length;
    } while (this.#left > 0 && !below.pending);
    if (this.#left === 0 && this.#command !== CONTINUE)
      this.#stop(this.#command === DIRECT ? "direct" : "plain");
    buffer.set(content.subarray(at), at);
    return at;
  }

  #look(content: Buffer): void {
    this.#left = this.#end?.find(content) ?? Math.min(content.length, MAX_CONTENT_BYTES);
    this.#command = this.#end?.command ?? END;
  }

  /** No more content comes: where there was none, the block that says so has the id. 0, or an errno. */
  sayEnd(io: WireIo, below: Wire): number {
    const sent = this.#isFirst ? this.#writeBlock(io, below, END, NOTHING, true) : 0;
    this.#stop("plain");
    return Math.min(sent, 0);
  }

  #stop(state: "plain" | "direct"): void {
    this.state = state;
    this.#owesEnd = false;
  }

  #writeBlock(io: WireIo, below: Wire, command: Command, content: Uint8Array, long: boolean): number {
    const { buffer } = io.calls;
    const block = encodeBlock(this.#isFirst ? this.#id : null, command, content, long);
    const head = this.#opening?.bytes ?? NOTHING;
    buffer.set(head);
    buffer.set(block, head.length);
    const size = head.length + block.length;
    const sent = below.write(io, size);
    // A wire of TLS takes all that it is given, or fails.
    if (sent < size) return sent < 0 ? sent : BROKEN;
    this.#isFirst = false;
    this.#opening = null;
    return size;
  }
}
