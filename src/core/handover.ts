/** How a stream lets another owner continue with its socket: a worker that moves bytes past JavaScript's streams. */
import { type Server, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
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

/** One side of a connection: everything that the next owner of its socket needs. */
export interface Detachable {
  readonly kind: WireKind;
  /** Its bytes are not the payload alone: see `DetachedState.layers`. */
  readonly isLayered?: boolean;
  /** One of its layers is of sealed messages. */
  readonly hasSealedLayer?: boolean;
  /** Of a session that continues: both sockets come back as soon as there is something else in it. */
  readonly isSession?: boolean;
  /**
   * A socket of the runtime, which is duplicated and destroyed; or a descriptor, whose ownership passes to the caller
   * of `detach`; -1: there is none, and the worker has the stream.
   */
  readonly socket: Socket | number;
  /** The one worker that can go on with it; absent: any. */
  readonly worker?: object;
  /** From here on the stream reads, writes and closes nothing; destroying it still ends the whole connection. */
  detach(): DetachedState;
  /**
   * Called at the end when the wire has left the descriptor open: it is the stream's again. -1: it is gone. `remains`
   * comes from a wire that served one session of a socket that continues.
   */
  readonly reattach?: (fd: number, remainder: WireRemainder | null) => void;
}

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

/** What goes with the socket; what the parts mean is between the stream and the port of that kind. */
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

/** On streams whose socket can be detached: gives the way to do it; null while the stream itself has something to finish. */
export const DETACHABLE = Symbol("how this stream is detached");

/** On streams over another stream: that one, once they add, remove and buffer nothing but their `LAYERS`; else null. */
export const LOWER_STREAM = Symbol("the stream that this one has become");

/** On the same, where they do add or remove something: what, from the wire upwards. */
export const LAYERS = Symbol("what this stream adds to the first bytes");

/** On the same: the one below was taken over, and its close says nothing any more. */
export const LOWER_DETACHED = Symbol("the stream below was taken over");

/** On streams of a connection that another thread has: bytes go by that thread alone once they are detached. */
export const IN_THREAD = Symbol("another thread has the connection of this stream");

interface DetachSteps {
  readonly [DETACHABLE]?: () => Detachable | null;
  readonly [LOWER_STREAM]?: () => Duplex | null;
  readonly [LAYERS]?: () => readonly Layer[];
  readonly [LOWER_DETACHED]?: () => void;
}

/** How a stream, or the one that it has become, is detached. Null: not now, and perhaps never. */
export function detachable(stream: Duplex): Detachable | null {
  const steps: Duplex & DetachSteps = stream;
  const { [DETACHABLE]: own, [LOWER_STREAM]: below, [LAYERS]: ownLayers } = steps;
  const ownSide = own?.call(stream) ?? null;
  if (ownSide !== null) return ownSide;
  if (below === undefined) return isPlainSocket(stream) ? detachableSocket(stream) : null;
  const next = below.call(stream);
  if (next === null || next.readableLength > 0 || next.writableLength > 0) return null;
  const side = detachable(next);
  if (side === null) return null;
  const layersNow = (): readonly Layer[] => ownLayers?.call(stream) ?? [];
  const leave = (): DetachedState => {
    const { [LOWER_DETACHED]: detached }: Duplex & DetachSteps = stream;
    const layers = layersNow(); // not before: what was read already has been written meanwhile
    detached?.call(stream);
    const state = side.detach();
    return layers.length === 0 ? state : { ...state, layers: [...(state.layers ?? []), ...layers] };
  };
  return { ...side, detach: leave, ...(layersNow().length === 0 ? {} : { isLayered: true }) };
}

/**
 * Sealed messages over a side that is more than a socket. `depart` gives what they would be over one. Null: it has such a
 * layer, and a worker has memory for one.
 */
export function sealedOver(
  below: Detachable,
  form: SealedLayer["form"],
  depart: () => DetachedState,
): Detachable | null {
  if (below.hasSealedLayer === true) return null;
  const leave = (): DetachedState => {
    const layer: SealedLayer = { kind: "sealed", form, ...depart() };
    const state = below.detach();
    return { ...state, layers: [...(state.layers ?? []), layer] };
  };
  return { ...below, isLayered: true, hasSealedLayer: true, detach: leave };
}

/** A kernel TCP socket without TLS, or a local pipe. */
export function isPlainSocket(stream: Duplex): stream is Socket {
  return stream instanceof Socket && !(stream instanceof TLSSocket);
}

/** The number of its descriptor, which the runtime keeps in a handle below; -1, which the kernel refuses, where it has none. */
export function descriptorOf(socket: Socket | Server): number {
  const handle = "_handle" in socket ? socket._handle : null;
  const isOpen = typeof handle === "object" && handle !== null && "fd" in handle;
  return isOpen && typeof handle.fd === "number" ? handle.fd : -1;
}

const NOTHING: DetachedState = { numbers: [], unread: null };

/** Null where something is under way that the runtime alone could finish. */
function detachableSocket(socket: Socket): Detachable | null {
  if (socket.destroyed || socket.connecting || socket.writableEnded || socket.writableLength > 0) return null;
  if (descriptorOf(socket) < 0 || socket.remoteFamily === undefined) return null;
  return { kind: "plain", socket, detach: () => NOTHING };
}
