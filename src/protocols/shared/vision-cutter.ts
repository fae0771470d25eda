import { type HandshakeInspector, PaddingEnd } from "./vision-inspector.ts";
import { type Command, CONTINUE, encodeBlock, END, MAX_CONTENT_BYTES } from "./vision-padding.ts";

interface CutterStart {
  /** Null: the first block is out. */
  readonly id: Buffer | null;
  /** Goes in front of the first block, in the same write; empty: that is out. */
  readonly opening: Uint8Array;
  /** False: TLS below stays, and the next block is the last. */
  readonly mayLeave: boolean;
}

const NOTHING = new Uint8Array(0);

/**
 * Cuts what goes to the peer into blocks and says how they end, until it is known what is inside. Each block is to go out in a write
 * of its own: peers expect it in its own record.
 */
export class BlockCutter {
  /** How much content is in the latest block. */
  taken = 0;
  /** The command of the latest block. END, DIRECT: none follows it. */
  command: Command = CONTINUE;
  #id: Buffer | null;
  #opening: Uint8Array;
  readonly #inspector: HandshakeInspector;
  /** Null: the next block is the last. */
  readonly #end: PaddingEnd | null;
  /** Of content that was looked at: what still goes in blocks, and how these end. */
  #left = 0;
  #last: Command = END;

  /** The inspector sees the other direction, too. */
  constructor({ id, opening, mayLeave }: CutterStart, inspector: HandshakeInspector) {
    this.#id = id;
    this.#opening = opening;
    this.#inspector = inspector;
    this.#end = mayLeave ? new PaddingEnd(inspector) : null;
  }

  /** The block with the id is still to come. */
  get isFirst(): boolean {
    return this.#id !== null;
  }

  /** Content that was looked at is still to go in blocks. */
  get hasMore(): boolean {
    return this.#left > 0;
  }

  /** The next block, of content that begins behind the latest one's. */
  next(content: Buffer): Buffer {
    if (this.#left === 0) this.#look(content);
    const piece = content.subarray(0, Math.min(this.#left, MAX_CONTENT_BYTES));
    this.#left -= piece.length;
    return this.#block(this.#left > 0 ? CONTINUE : this.#last, piece, this.#inspector.isTls);
  }

  #look(content: Buffer): void {
    this.#left = this.#end?.find(content) ?? Math.min(content.length, MAX_CONTENT_BYTES);
    this.#last = this.#end?.command ?? END;
  }

  /** A block that carries nothing. */
  empty(command: Command, long: boolean): Buffer {
    return this.#block(command, NOTHING, long);
  }

  #block(command: Command, content: Uint8Array, long: boolean): Buffer {
    this.taken = content.length;
    this.command = command;
    const block = encodeBlock(this.#id, command, content, long);
    this.#id = null;
    if (this.#opening.length === 0) return block;
    const first = Buffer.concat([this.#opening, block]);
    this.#opening = NOTHING;
    return first;
  }
}
