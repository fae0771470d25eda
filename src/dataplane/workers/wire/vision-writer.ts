import type { PaddingState, VisionLayer } from "#core/wire-state.ts";
import { BlockCutter } from "#protocols/shared/vision-cutter.ts";
import type { HandshakeInspector } from "#protocols/shared/vision-inspector.ts";
import { CONTINUE, DIRECT, END } from "#protocols/shared/vision-padding.ts";
import { BROKEN } from "./sealed-reader.ts";
import { UnsentOpening } from "./unsent-opening.ts";
import type { Wire, WireIo } from "./wire.ts";

/** Pads what goes to the peer. */
export class VisionWriter {
  /** What follows is neither padded nor, where it is `direct`, inside TLS. */
  state: "padded" | "plain" | "direct" = "padded";
  readonly #inspector: HandshakeInspector;
  readonly #blocks: BlockCutter;
  /** Goes with the first block, which does not wait for ever; null: it is out. */
  #opening: UnsentOpening | null = null;
  /** The last block is to go out though there is nothing to put into it. */
  #owesEnd = false;

  constructor(id: Buffer, { mayLeave, writing }: VisionLayer, inspector: HandshakeInspector) {
    this.#inspector = inspector;
    const { opening, afterMs, isFirst } = writing ?? ALL_OUT;
    this.#blocks = new BlockCutter({ id: isFirst ? id : null, opening, mayLeave }, inspector);
    if (writing === null) this.state = "plain";
    else if (opening.length > 0) this.#opening = new UnsentOpening(opening, afterMs);
  }

  /** Of the opening. */
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
    if (this.state === "padded" && !this.#blocks.hasMore && !this.#inspector.isTls12OrAbove)
      this.#owesEnd = true;
  }

  /** How many bytes went out, or an errno. */
  sayDue(io: WireIo, below: Wire): number {
    const isEnd = this.#owesEnd;
    return this.#send(io, below, this.#blocks.empty(isEnd ? END : CONTINUE, !isEnd));
  }

  /** As `Wire.write`, while the state is `padded`; with the state another one, what was not taken goes the new way. */
  write(io: WireIo, below: Wire, size: number): number {
    const { buffer } = io.calls;
    const content = Buffer.from(buffer.subarray(0, size));
    let at = 0;
    do {
      const sent = this.#send(io, below, this.#blocks.next(content.subarray(at)));
      if (sent < 0) return sent;
      at += this.#blocks.taken;
    } while (this.#blocks.hasMore && !below.pending);
    buffer.set(content.subarray(at), at);
    return at;
  }

  /** No more content comes: where there was none, the block that says so has the id. 0, or an errno. */
  sayEnd(io: WireIo, below: Wire): number {
    const sent = this.#blocks.isFirst ? this.#send(io, below, this.#blocks.empty(END, true)) : 0;
    this.state = "plain";
    this.#owesEnd = false;
    return Math.min(sent, 0);
  }

  /** A wire of TLS takes all that it is given, or fails. */
  #send(io: WireIo, below: Wire, block: Buffer): number {
    io.calls.buffer.set(block);
    const sent = below.write(io, block.length);
    if (sent < block.length) return sent < 0 ? sent : BROKEN;
    this.#opening = null;
    const { command } = this.#blocks;
    if (command === CONTINUE) return sent;
    this.state = command === DIRECT ? "direct" : "plain";
    this.#owesEnd = false;
    return sent;
  }
}

const ALL_OUT: PaddingState = { opening: new Uint8Array(0), isFirst: false };
