import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type Departure, isPlainSocket, OFFER, type Offer, offerOf, PASSED_ON } from "#core/handover.ts";
import { CodecStream, type CodecStreamOptions, type StreamCodec } from "#net/codec-stream.ts";
import { discardInput } from "#net/read-handshake.ts";

/** A codec whose ciphers somebody else may go on with, once all that opens the conversation is through. */
export interface DepartingCodec extends StreamCodec {
  /** How it leaves: from then on it seals and opens nothing. Null: not now, and perhaps never. */
  departure(): (() => Departure) | null;
}

/** Over a plain socket the relay threads may go on with it; over a plugin they may not. */
class SealedStream extends CodecStream {
  readonly #codec: DepartingCodec;
  readonly #discardOnFaultMs: number | undefined;

  constructor(wire: Duplex, codec: DepartingCodec, options: CodecStreamOptions) {
    super(wire, codec, options);
    this.#codec = codec;
    this.#discardOnFaultMs = options.discardOnFaultMs;
  }

  [OFFER](): Offer | null {
    const { wire } = this;
    const isBusy = this.destroyed || this.writableEnded || this.writableLength > 0 || wire.readableLength > 0;
    const below = isBusy || !isPlainSocket(wire) ? null : offerOf(wire);
    const depart = below === null ? null : this.#codec.departure();
    if (below === null || depart === null) return null;
    const limitMs = this.#discardOnFaultMs;
    const leave = (): Departure => {
      this[PASSED_ON]();
      const { words, letter } = depart();
      return { words: [...words, limitMs === undefined ? 0 : 1], letter };
    };
    const offer: Offer = { kind: "sealed", socket: below.socket, leave };
    return limitMs === undefined
      ? offer
      : { ...offer, takeBack: (fd) => void (fd >= 0 && discard(fd, limitMs)) };
  }
}

function discard(fd: number, limitMs: number): void {
  discardInput(new Socket({ fd, allowHalfOpen: true }), limitMs);
}

export function openStream(wire: Duplex, codec: StreamCodec, options: CodecStreamOptions): Duplex {
  return "departure" in codec
    ? new SealedStream(wire, codec as DepartingCodec, options)
    : new CodecStream(wire, codec, options);
}
