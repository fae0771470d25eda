/** How a stream lets another owner continue with its socket: a worker that moves bytes past JavaScript's streams. */
import { type Server, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import type { DetachedState, Layer, SealedLayer, WireKind, WireRemainder } from "./wire-state.ts";

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
   * Called at the end when the wire has left the descriptor open: it is the stream's again. -1: it is gone. `remainder`
   * comes from a wire that served one session of a socket that continues; null: from any other, and where the thread is gone.
   */
  readonly reattach?: (fd: number, remainder: WireRemainder | null) => void;
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
