/**
 * What a wire is behind the bytes that have moved: everything that another owner of its socket needs to go on. Plain data, a
 * copy of which goes to another thread.
 */
import type { PaddingDetails, WireDetails } from "./wire-details.ts";
import type { UnderlayRecipe } from "./wire-recipe.ts";

/**
 * What lies between a socket and the plain bytes. `tls`: by libssl. `records`: TLS 1.3 by our own engine. `encrypted`:
 * records with a header in the clear and a counted nonce. `sealed`: chunks of Shadowsocks. `quic`: a stream whose connection
 * is in the worker's own thread.
 */
export type WireKind = "plain" | "tls" | "records" | "sealed" | "encrypted" | "vmess" | "quic";

/**
 * What a stream still adds to its first bytes and takes off those of the peer, over a wire that carries the rest as it is.
 */
export interface Opening {
  readonly kind: "opening";
  /** Goes out in front of the first payload; null: nothing does. */
  readonly ours: Uint8Array | null;
  /** It goes out alone where no payload comes before the end. */
  readonly isOwed: boolean;
  /** It goes out alone where no payload has come for so long, in ms; absent: it waits for some, or for the end. */
  readonly afterMs?: number;
  /** How far the header in front of the peer's payload has been read: see `HeaderStage`; null: there is none. */
  readonly theirs: HeaderStage | null;
}

/** A header of VERSION(1)=0 LENGTH(1) and as many bytes: what of it is still to come. `null`: the length is not known. */
export interface HeaderStage {
  readonly seenVersion: boolean;
  readonly leftBytes: number | null;
}

/** Blocks of Vision inside TLS: of a direction that is not padded any more nothing is left. */
export interface VisionLayer {
  readonly kind: "vision";
  /** Ours. */
  readonly role: "client" | "server";
  readonly id: Uint8Array;
  /**
   * From the first byte on TLS inside is looked for, and the one below is left where there is some. False: neither side has
   * seen any, the one below stays, and our padding ends with the next block.
   */
  readonly mayLeave: boolean;
  /** Null: the peer pads no more. */
  readonly reading: UnpaddingState | null;
  /** Null: our padding has ended. */
  readonly writing: PaddingState | null;
}

export interface PaddingState {
  /** In front of the first block, in the same write; empty: that is out. */
  readonly opening: Uint8Array;
  /** It goes out with an empty block where no payload has come for so long, in ms; absent: it waits for some, or for the end. */
  readonly afterMs?: number;
  /** The first block, which has the id, is still to come. */
  readonly isFirst: boolean;
}

/** Within which block the reading is; see `Unpadder`. */
export interface UnpaddingState {
  /** Of the id, which comes first. */
  readonly start: Uint8Array;
  readonly header: Uint8Array;
  readonly contentBytes: number;
  readonly paddingBytes: number;
  readonly command: number;
}

/** Of a direction of which nothing has come. */
export const FIRST_BLOCK: UnpaddingState = {
  start: new Uint8Array(0),
  header: new Uint8Array(0),
  contentBytes: 0,
  paddingBytes: 0,
  command: 0,
};

/** Frames of WebSocket, both ways. */
export interface WebSocketLayer {
  readonly kind: "websocket";
  /** Ours. */
  readonly role: "client" | "server";
  readonly reading: WebSocketFrame;
}

/** Within which frame the reading is; see `FrameReader`. */
export interface WebSocketFrame {
  /** Of the next frame. */
  readonly head: Uint8Array;
  readonly opcode: number;
  /** Of the payload, still to come. */
  readonly left: number;
  /** How many bytes of the key have been used. */
  readonly phase: number;
  readonly key: Uint8Array;
  /** Payload of a control frame, as far as it has come. */
  readonly control: Uint8Array;
}

/** Sealed messages over a wire that is more than a socket, described as what they would be over one. */
export interface SealedLayer extends Omit<DetachedState, "layers"> {
  readonly kind: "sealed";
  readonly form: "sealed" | "vmess" | "encrypted";
}

/** Payload of the peer that was read, and has not been passed on. */
export interface ReadAhead {
  readonly kind: "read-ahead";
  readonly payload: Uint8Array;
}

/** The one stream of a session of frames over TLS; see `Detachable.isSession`. */
export interface FramedLayer {
  readonly kind: "framed";
  readonly stream: number;
  /** What is still to come of the data frame that is under way. */
  readonly dataLeft: number;
  /** Bytes of the session that were read already and not understood; null: none. */
  readonly unread: Uint8Array | null;
  /** Absent: no write is padded. */
  readonly padding?: PaddingDetails;
}

/** A stream of a session that the thread has, or opens: see `SessionRecipe` and `MuxRecipe`. */
export interface StreamLayer {
  readonly kind: "stream";
  /** Where it leads, as the session's protocol has it. */
  readonly target: Uint8Array;
}

/** What a stream is over a wire that it has not become quite yet, or adds to it throughout. */
export type Layer =
  | Opening
  | VisionLayer
  | WebSocketLayer
  | SealedLayer
  | ReadAhead
  | FramedLayer
  | StreamLayer;

/** The state of a wire whose socket has a next owner. */
export interface WireRemainder {
  /** The socket can neither be read nor written any more. */
  readonly failed: boolean;
  /** Of the socket: sealed, and not taken by it yet; goes out before anything else. */
  readonly unsent: Uint8Array | null;
  /** Payload of the session that was read, and not passed on. */
  readonly undelivered: Uint8Array | null;
  /** Bytes of the session that are still to come of the present frame, behind `unread`. */
  readonly dataLeft: number;
  /** Of the wire: opened, and not understood. */
  readonly unread: Uint8Array;
  /** Writes of the session, with those before, where it has `PaddingDetails`. */
  readonly writes: number;
  /** Null: the library has it all. */
  readonly records: RecordState | null;
}

/** Of records of TLS 1.3 behind the handshake, for those who go on with them. */
export interface RecordState {
  /** Records so far with the present keys. */
  readonly opened: number;
  readonly sealed: number;
  /** The traffic secrets of opening and sealing, and behind them what was read from the socket already, and not opened. */
  readonly secrets: Uint8Array;
}

/** What goes with the socket. What the numbers mean, the stream and the wire of that kind agree on. */
export interface DetachedState {
  readonly numbers: readonly number[];
  /** Bytes that were read from the socket and not opened yet, where there are such. */
  readonly unread: Uint8Array | null;
  /** From the wire upwards; absent: none. */
  readonly layers?: readonly Layer[];
  readonly details?: WireDetails;
}

/**
 * What lies over a socket whose connection a worker itself begins to relay: no stream was ever made of it. What its numbers
 * name is the worker's.
 */
export interface WireStart extends DetachedState {
  readonly kind: WireKind;
  /** What the worker opens first; it sets the numbers itself. */
  readonly under?: UnderlayRecipe;
}

/** What lies over a socket, as what would lie over another wire. Throws `RangeError` for what cannot. */
export function layersOf({ kind, layers = [], details = {}, ...state }: WireStart): readonly Layer[] {
  if (kind === "plain") return layers;
  if (kind !== "sealed" && kind !== "vmess") throw new RangeError(`${kind} is no layer`);
  const { opening, ...rest } = details;
  const sealed: Layer = { kind: "sealed", form: kind, ...state, details: rest };
  if (opening === undefined) return [sealed, ...layers];
  const { bytes: ours, afterMs } = opening;
  return [{ kind: "opening", ours, isOwed: true, afterMs, theirs: null }, sealed, ...layers];
}
