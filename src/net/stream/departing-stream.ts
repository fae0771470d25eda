import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import {
  type DetachedState,
  isPlainSocket,
  DETACHABLE,
  type Detachable,
  detachable,
  LOWER_DETACHED,
  type WireKind,
} from "#core/handover.ts";
import { discardInput } from "#net/listen/read-handshake.ts";
import { CodecStream, type CodecStreamOptions, type StreamCodec } from "./codec-stream.ts";

/** A codec whose ciphers a relay worker may take over. */
export interface DepartingCodec extends StreamCodec {
  readonly wireKind: WireKind;
  /** False: not now, and perhaps never. */
  readonly canDepart: boolean;
  /**
   * Only while it can: from then on it seals and opens nothing. `isSpared`: the socket of a faulty peer stays open, see
   * `discardOnFaultMs`.
   */
  depart(isSpared: boolean): DetachedState;
}

/** Over a plain socket relay workers may take it over; over anything else they may not. */
class DepartingStream extends CodecStream {
  readonly #codec: DepartingCodec;
  readonly #discardOnFaultMs: number | undefined;

  constructor(wire: Duplex, codec: DepartingCodec, options: CodecStreamOptions) {
    super(wire, codec, options);
    this.#codec = codec;
    this.#discardOnFaultMs = options.discardOnFaultMs;
  }

  [DETACHABLE](): Detachable | null {
    const { wire } = this;
    const isBusy = this.destroyed || this.writableEnded || this.writableLength > 0 || wire.readableLength > 0;
    const below = isBusy || !isPlainSocket(wire) ? null : detachable(wire);
    if (below === null || !this.#codec.canDepart) return null;
    const limitMs = this.#discardOnFaultMs;
    const leave = (): DetachedState => {
      this[LOWER_DETACHED]();
      return this.#codec.depart(limitMs !== undefined);
    };
    const side: Detachable = { kind: this.#codec.wireKind, socket: below.socket, detach: leave };
    return limitMs === undefined
      ? side
      : { ...side, reattach: (fd) => void (fd >= 0 && discard(fd, limitMs)) };
  }
}

function discard(fd: number, limitMs: number): void {
  discardInput(new Socket({ fd, allowHalfOpen: true }), limitMs);
}

export function openStream(wire: Duplex, codec: StreamCodec, options: CodecStreamOptions): CodecStream {
  return "depart" in codec
    ? new DepartingStream(wire, codec as DepartingCodec, options)
    : new CodecStream(wire, codec, options);
}
