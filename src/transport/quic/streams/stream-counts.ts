/** How many streams both sides have opened and may open (RFC 9000 §4.6). Kind 0: of both directions, 1: of one. */
import type { ControlFrame, ControlQueue } from "#transport/quic/control-queue.ts";
import { QuicFault, STREAM_LIMIT_ERROR, STREAM_STATE_ERROR } from "#transport/quic/fault.ts";
import { FRAME } from "#transport/quic/wire/frames.ts";
import type { TransportNumbers } from "#transport/quic/wire/transport-parameters.ts";

export type StreamKind = 0 | 1;

const VARINT = 8;

export class StreamCounts {
  readonly #controls: ControlQueue;
  readonly #opened: [number, number] = [0, 0];
  readonly #mayOpen: [number, number] = [0, 0];
  readonly #peerOpened: [number, number] = [0, 0];
  readonly #peerMayOpen: [number, number];
  readonly #waiting: [(() => void)[], (() => void)[]] = [[], []];
  readonly #maxStreams: readonly [ControlFrame, ControlFrame];

  /** `own`: what we allow the peer. */
  constructor(own: TransportNumbers, controls: ControlQueue) {
    this.#controls = controls;
    this.#peerMayOpen = [own.maxStreamsBidi, own.maxStreamsUni];
    this.#maxStreams = [this.#frame(0), this.#frame(1)];
  }

  #frame(kind: StreamKind): ControlFrame {
    return this.#controls.make(1 + VARINT, (out) => {
      out.byte(kind === 0 ? FRAME.maxStreamsBidi : FRAME.maxStreamsUni);
      out.varint(this.#peerMayOpen[kind]);
    });
  }

  /** Takes the number of a stream that we open; null: the peer allows no more at the moment. */
  open(kind: StreamKind): number | null {
    return this.#opened[kind] < this.#mayOpen[kind] ? this.#opened[kind]++ : null;
  }

  /** Called once when the peer allows another one, or never; `cancel` takes the wish back. */
  whenAllowed(kind: StreamKind, on: () => void): { cancel(): void } {
    const waiting = this.#waiting[kind];
    waiting.push(on);
    return {
      cancel: () => {
        const at = waiting.indexOf(on);
        if (at >= 0) waiting.splice(at, 1);
      },
    };
  }

  /** The peer allows so many. */
  onMaxStreams(kind: StreamKind, limit: number): void {
    if (limit <= this.#mayOpen[kind]) return;
    this.#mayOpen[kind] = limit;
    for (const on of this.#waiting[kind].splice(0, limit - this.#opened[kind])) on();
  }

  /** The peer speaks of one of ours. Throws `QuicFault` where it was never opened. */
  checkOurs(kind: StreamKind, number: number): void {
    if (number >= this.#opened[kind]) throw new QuicFault(STREAM_STATE_ERROR, "a stream that is not open");
  }

  /**
   * The peer speaks of one of its own: `open` is called for it and for all before it that are not open yet (RFC 9000 §2.1).
   * Throws `QuicFault` where it may not open so many.
   */
  openPeers(kind: StreamKind, number: number, open: (number: number) => void): void {
    if (number >= this.#peerMayOpen[kind])
      throw new QuicFault(STREAM_LIMIT_ERROR, "more streams than allowed");
    while (this.#peerOpened[kind] <= number) open(this.#peerOpened[kind]++);
  }

  /** One of the peer's is over: it may open another one. */
  giveBack(kind: StreamKind): void {
    this.#peerMayOpen[kind]++;
    this.#controls.push(this.#maxStreams[kind]);
  }

  /** The connection is over: who waits looks for himself. */
  abandon(): void {
    for (const waiting of this.#waiting) for (const on of waiting.splice(0)) on();
  }
}

/** How much may be sent on a new stream; `peer` null: its limits are not known. */
export function sendLimitOf(peer: TransportNumbers | null, isUni: boolean, isOurs: boolean): number {
  if (peer === null) return 0;
  if (isUni) return peer.maxStreamDataUni;
  return isOurs ? peer.maxStreamDataBidiRemote : peer.maxStreamDataBidiLocal;
}
