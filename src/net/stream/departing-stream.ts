import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import {
  isPlainSocket,
  DETACHABLE,
  type Detachable,
  detachable,
  LOWER_DETACHED,
  sealedOver,
} from "#core/handover.ts";
import type { DetachedState, SealedLayer, WireStart } from "#core/wire-state.ts";
import type { ClientStream } from "#net/listen/opened-session.ts";
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
  const bytes = new Uint8Array(codec.begin());
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

/** What the handshake of a client has found. */
export interface FoundCodec {
  readonly codec: StreamCodec;
  /** Payload that came with the handshake. */
  readonly payload: Uint8Array;
}

/**
 * A client's stream behind the handshake that has found its codec; `again` finds it once more, where a worker has begun with
 * the first one. `limitMs`: as `discardOnFaultMs`.
 */
export function clientStream(first: FoundCodec, again: () => FoundCodec, limitMs: number): ClientStream {
  let next: FoundCodec | null = first;
  const take = (): FoundCodec => {
    const found = next ?? again();
    next = null;
    return found;
  };
  const begin = (): WireStart => {
    const { codec, payload } = take();
    if (!isDeparting(codec)) throw new Error("a codec that could depart cannot any more");
    const { layers = [], ...state } = codec.depart(true);
    const ahead = { kind: "read-ahead", payload: Uint8Array.from(payload) } as const;
    const all = payload.length === 0 ? layers : [...layers, ahead];
    return { ...state, kind: codec.wireKind, layers: all };
  };
  const canBegin = isDeparting(first.codec) && first.codec.canDepart;
  return {
    open(below) {
      const { codec, payload } = take();
      const stream = openStream(below, codec, { discardOnFaultMs: limitMs });
      if (payload.length > 0) stream.unshift(payload);
      return stream;
    },
    wire: canBegin ? { begin, takeBack: (fd) => discard(fd, limitMs) } : null,
    ahead: (shown) => (first.payload.length > 0 ? first.payload : openedOf(again().codec, shown)),
  };
}

/** As far as it is whole, by a codec that is used for nothing else. */
function openedOf(codec: StreamCodec, sealed: Buffer): Buffer {
  const opened: Buffer[] = [];
  try {
    codec.open(sealed, (plain) => void (plain !== null && opened.push(Buffer.from(plain))));
  } catch {
    // who goes on with the client finds that, too
  }
  codec.close?.();
  return Buffer.concat(opened);
}

export function openStream(wire: Duplex, codec: StreamCodec, options: CodecStreamOptions): CodecStream {
  return isDeparting(codec)
    ? new DepartingStream(wire, codec, options)
    : new CodecStream(wire, codec, options);
}

const isDeparting = (codec: StreamCodec): codec is DepartingCodec => "depart" in codec;
