import type { WebSocketFrame, WebSocketLayer } from "#core/wire-state.ts";
import type { StreamCodec } from "#net/stream/codec-stream.ts";
import { FrameReader, type FrameSink } from "./frame-reader.ts";
import { BINARY, encodeClose, encodeFrame, PONG, type WebSocketRole } from "./frames.ts";

const EMPTY = Buffer.alloc(0);

export class WebSocketCodec implements StreamCodec {
  readonly #role: WebSocketRole;
  readonly #reader: FrameReader;
  /** Of the call that is under way. */
  #wire: Buffer = EMPTY;
  #hasMore = false;
  #emit: (plain: Buffer | null) => void = () => {};

  /** `reply` sends an answer to a ping; it may drop it. `within`: as `FrameReader` has it. */
  constructor(role: WebSocketRole, reply: (frame: Buffer) => void, within: WebSocketFrame | null = null) {
    this.#role = role;
    const sink: FrameSink = {
      onPayload: (from, to) => {
        this.#hasMore = to < this.#wire.length;
        this.#emit(this.#wire.subarray(from, to));
      },
      onPing: (payload) => reply(encodeFrame(role, PONG, payload)),
      // Our own close frame goes out when our side has no more to say: so the other direction may still finish.
      onClose: () => this.#emit(null),
    };
    this.#reader = new FrameReader(role, sink, within);
  }

  /** Null while something lies behind the payload that is handed on: it has been read, and no worker would see it. */
  get layer(): WebSocketLayer | null {
    if (this.#hasMore) return null;
    return { kind: "websocket", role: this.#role, reading: this.#reader.within };
  }

  seal(plain: Buffer): Buffer {
    return plain.length === 0 ? plain : encodeFrame(this.#role, BINARY, plain);
  }

  sealEnd(): Buffer {
    return encodeClose(this.#role);
  }

  open(wire: Buffer, emit: (plain: Buffer | null) => void): void {
    this.#emit = emit;
    this.#wire = wire;
    this.#hasMore = true;
    this.#reader.read(wire, 0, wire.length);
    this.#hasMore = false;
    this.#wire = EMPTY;
  }

  openEnd(): void {} // peers often close without a close frame
}
