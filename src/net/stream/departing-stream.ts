import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import {
  type DetachedState,
  isPlainSocket,
  DETACHABLE,
  type Detachable,
  detachable,
  LOWER_DETACHED,
  type SealedLayer,
  sealedOver,
  type WireStart,
} from "#core/handover.ts";
import { discardInput } from "#net/listen/read-handshake.ts";
import { CodecStream, type CodecStreamOptions, type StreamCodec } from "./codec-stream.ts";

/** A codec whose ciphers a relay worker may take over. */
export interface DepartingCodec extends StreamCodec {
  readonly wireKind: SealedLayer["form"];
  /** False: not now, and perhaps never. */
  readonly canDepart: boolean;
  /**
   * Only while it can: from then on it seals and opens nothing. `isSpared`: the socket of a faulty peer stays open, see
   * `discardOnFaultMs`.
   */
  depart(isSpared: boolean): DetachedState;
}

/** A client's codec whose connection a worker may dial. */
export interface BeginningCodec extends DepartingCodec {
  /** What goes out in front of the first payload, to be sent by another: only as the first call. From then on it can depart. */
  begin(): Buffer;
}

/** The client's stream over a socket that a worker dials: its opening goes with the first payload, or alone after `afterMs`. */
export function beginWire(codec: BeginningCodec, afterMs: number): WireStart {
  const bytes = Uint8Array.from(codec.begin());
  const state = codec.depart(false);
  return { ...state, kind: codec.wireKind, details: { ...state.details, opening: { bytes, afterMs } } };
}

/** Relay workers may take it over together with what lies below: a socket, or a stream that can be detached. */
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
    const isBusy = this.destroyed || this.writableEnded || this.writableLength > 0;
    if (isBusy || wire.readableLength > 0 || wire.writableLength > 0) return null;
    const below = detachable(wire);
    if (below === null || !this.#codec.canDepart) return null;
    return isPlainSocket(wire) ? this.#withSocket(below) : this.#overWire(below);
  }

  #withSocket({ socket }: Detachable): Detachable {
    const limitMs = this.#discardOnFaultMs;
    const leave = (): DetachedState => {
      this[LOWER_DETACHED]();
      return this.#codec.depart(limitMs !== undefined);
    };
    const side: Detachable = { kind: this.#codec.wireKind, socket, detach: leave };
    return limitMs === undefined
      ? side
      : { ...side, reattach: (fd) => void (fd >= 0 && discard(fd, limitMs)) };
  }

  /** A faulty peer behind TLS or WebSocket has shown that it knows us: its connection ends at once. */
  #overWire(below: Detachable): Detachable | null {
    return sealedOver(below, this.#codec.wireKind, () => {
      this[LOWER_DETACHED]();
      return this.#codec.depart(false);
    });
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
