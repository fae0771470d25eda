import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import {
  type DetachedState,
  isPlainSocket,
  DETACHABLE,
  type Detachable,
  detachable,
  LOWER_DETACHED,
} from "#core/handover.ts";
import { CodecStream, type CodecStreamOptions, type StreamCodec } from "#net/stream/codec-stream.ts";
import { discardInput } from "#net/listen/read-handshake.ts";

/** A codec whose ciphers a relay worker may take over once everything that opens the connection has passed. */
export interface DepartingCodec extends StreamCodec {
  /** How it leaves: from then on it seals and opens nothing. Null: not now, and perhaps never. */
  detached(): (() => DetachedState) | null;
}

/** Over a plain socket relay workers may take it over; over a plugin they may not. */
class SealedStream extends CodecStream {
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
    const depart = below === null ? null : this.#codec.detached();
    if (below === null || depart === null) return null;
    const limitMs = this.#discardOnFaultMs;
    const leave = (): DetachedState => {
      this[LOWER_DETACHED]();
      const { numbers, unread } = depart();
      return { numbers: [...numbers, limitMs === undefined ? 0 : 1], unread: unread };
    };
    const side: Detachable = { kind: "sealed", socket: below.socket, detach: leave };
    return limitMs === undefined
      ? side
      : { ...side, reattach: (fd) => void (fd >= 0 && discard(fd, limitMs)) };
  }
}

function discard(fd: number, limitMs: number): void {
  discardInput(new Socket({ fd, allowHalfOpen: true }), limitMs);
}

export function openStream(wire: Duplex, codec: StreamCodec, options: CodecStreamOptions): Duplex {
  return "detached" in codec
    ? new SealedStream(wire, codec as DepartingCodec, options)
    : new CodecStream(wire, codec, options);
}
