/** Frames that are said once, and again when they are lost, unless they no longer matter. */
import type { SentItem } from "./recovery/sent-packets.ts";
import type { WireWriter } from "./wire/writer.ts";

/** More of them means that the peer makes us say things faster than it listens: the oldest are not at fault, the peer is. */
const MOST_WAITING = 8192;

export class ControlQueue {
  readonly #waiting: ControlFrame[] = [];

  get hasFrames(): boolean {
    return this.#waiting.length > 0;
  }

  /** The caller closes the connection then. */
  get isOverfull(): boolean {
    return this.#waiting.length > MOST_WAITING;
  }

  push(frame: ControlFrame): void {
    if (frame.isWaiting) return;
    frame.isWaiting = true;
    this.#waiting.push(frame);
  }

  /** The next one that fits; null: there is none. */
  writeFrame(out: WireWriter, room: number): SentItem | null {
    const frame = this.#waiting[0];
    if (frame === undefined || frame.mostBytes > room) return null;
    this.#waiting.shift();
    frame.isWaiting = false;
    if (frame.isObsolete()) return this.writeFrame(out, room);
    frame.write(out);
    return frame;
  }

  /** A frame that says `write`; `isObsolete`: it need not be said. `onAcked`: the peer has it. */
  make(
    mostBytes: number,
    write: (out: WireWriter) => void,
    isObsolete: () => boolean = () => false,
    onAcked: () => void = () => {},
  ): ControlFrame {
    return new ControlFrame(this, mostBytes, write, isObsolete, onAcked);
  }
}

export class ControlFrame implements SentItem {
  readonly mostBytes: number;
  readonly write: (out: WireWriter) => void;
  readonly isObsolete: () => boolean;
  readonly onAcked: () => void;
  isWaiting = false;
  readonly #queue: ControlQueue;

  constructor(
    queue: ControlQueue,
    mostBytes: number,
    write: (out: WireWriter) => void,
    isObsolete: () => boolean,
    onAcked: () => void,
  ) {
    this.#queue = queue;
    this.mostBytes = mostBytes;
    this.write = write;
    this.isObsolete = isObsolete;
    this.onAcked = onAcked;
  }

  onLost(): void {
    if (!this.isObsolete()) this.#queue.push(this);
  }
}
