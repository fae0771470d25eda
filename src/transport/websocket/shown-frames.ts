import { ProtocolError } from "#core/errors.ts";
import { layersOf, type WebSocketFrame, type WireStart } from "#core/wire-state.ts";
import type { ClientFrames } from "#net/listen/first-bytes.ts";
import { FrameReader } from "./frame-reader.ts";

/** Where payload lies in bytes that are shown. */
type Piece = readonly [from: number, to: number];

/** The first frames of a client, as far as a worker shows them. They are still in its socket. */
export class ShownFrames implements ClientFrames {
  readonly payload: Buffer;
  behind: Buffer;
  /** Where the reading goes on: behind all that is shown, or behind what of it was understood. */
  reading: WebSocketFrame;
  readonly #shown: Buffer;
  readonly #pieces: readonly Piece[];

  private constructor(shown: Buffer, payload: Buffer, reading: WebSocketFrame, pieces: readonly Piece[]) {
    this.payload = this.behind = payload;
    this.reading = reading;
    this.#shown = shown;
    this.#pieces = pieces;
  }

  /** Null where they are more than payload: frames that are to be answered, an end, a fault. */
  static of(shown: Buffer): ShownFrames | null {
    const pieces: Piece[] = [];
    let isPayload = true;
    const refuse = (): void => void (isPayload = false);
    const onPayload = (from: number, to: number): void => void pieces.push([from, to]);
    const reader = new FrameReader("server", { onPayload, onPing: refuse, onClose: refuse });
    const bytes = Buffer.from(shown); // what is read is unmasked in place
    try {
      reader.read(bytes, 0, bytes.length);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      return null;
    }
    if (!isPayload) return null;
    const payload = Buffer.concat(pieces.map(([from, to]) => bytes.subarray(from, to)));
    return new ShownFrames(shown, payload, reader.within, pieces);
  }

  understood(payloadBytes: number): number {
    const size = this.#sizeOf(payloadBytes);
    const reader = new FrameReader("server", { onPayload() {}, onPing() {}, onClose() {} });
    reader.read(Buffer.from(this.#shown.subarray(0, size)), 0, size);
    this.reading = reader.within;
    this.behind = this.payload.subarray(payloadBytes);
    return size;
  }

  /** Of the frames around so much payload. */
  #sizeOf(payloadBytes: number): number {
    if (payloadBytes === this.payload.length) return this.#shown.length;
    let left = payloadBytes;
    for (const [from, to] of this.#pieces) {
      if (left <= to - from) return left === 0 ? 0 : from + left;
      left -= to - from;
    }
    return this.#shown.length;
  }

  over(wire: WireStart): WireStart {
    const frames = { kind: "websocket", role: "server", reading: this.reading } as const;
    return { kind: "plain", numbers: [], unread: null, layers: [frames, ...layersOf(wire)] };
  }
}
