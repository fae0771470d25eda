/** The end of a connection (RFC 9000 §10.2): said to the peer, and repeated while it has not understood. */
import type { ConnectionEvents } from "./connection-options.ts";
import { APPLICATION_ERROR } from "./fault.ts";
import type { Path } from "./path.ts";
import type { PacketSender } from "./packet-sender.ts";
import { APPLICATION_SPACE } from "./recovery/packet-space.ts";
import { FRAME } from "./wire/frames.ts";

/** The peer has closed the connection. */
export class PeerClosed extends Error {
  readonly isApplication: boolean;
  readonly closeCode: number;

  constructor(isApplication: boolean, closeCode: number, reason: string) {
    const code = `0x${closeCode.toString(16)}`;
    const kind = isApplication ? "code" : "transport error";
    super(`the peer closed the connection (${kind} ${code}${reason === "" ? "" : `: ${reason}`})`);
    this.isApplication = isApplication;
    this.closeCode = closeCode;
  }
}

export interface LastWords {
  readonly isApplication: boolean;
  /** The peer has finished the handshake: it may be told an application's code. */
  readonly isKnown: boolean;
  readonly code: number;
  readonly reason: string;
}

export class ConnectionEnd {
  readonly #events: ConnectionEvents;
  /** What was said; empty: nothing, because the peer has said it. */
  #said: readonly Uint8Array[] = [];
  #answers = 0;
  #isSaid = false;
  isFinished = false;
  /** Why the peer, or the network, has ended it; undefined: neither has. */
  failure: Error | undefined;

  constructor(events: ConnectionEvents) {
    this.#events = events;
  }

  get isOver(): boolean {
    return this.#isSaid || this.failure !== undefined || this.isFinished;
  }

  /** From now on nothing is sent. */
  drain(failure: Error): void {
    if (!this.isOver) this.failure = failure;
  }

  say(sender: PacketSender, { isApplication, isKnown, code, reason }: LastWords): void {
    this.#isSaid = true;
    const text = Buffer.from(reason);
    this.#said = sender.sendLast((out, space) => {
      // An application's code is not for those who are not known yet (RFC 9000 §10.2.3).
      const isPlain = isApplication && space.id === APPLICATION_SPACE && isKnown;
      out.byte(isPlain ? FRAME.closeApplication : FRAME.closeTransport);
      out.varint(isApplication && !isPlain ? APPLICATION_ERROR : code);
      if (!isPlain) out.varint(0);
      out.varint(isPlain ? text.length : 0);
      if (isPlain) out.put(text);
    });
  }

  /** The peer has not understood: it is told again, each time after twice as many datagrams. */
  answer(path: Path): void {
    this.#answers++;
    if ((this.#answers & (this.#answers - 1)) !== 0) return;
    for (const datagram of this.#said) this.#events.send(datagram, path);
  }

  finish(): void {
    this.isFinished = true;
  }
}
