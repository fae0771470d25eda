/**
 * Nothing lies over most clients' wires but a few bytes of ours that go out first, some with blocks of Vision around what
 * follows. That stands behind the numbers of the wire: a message between threads costs more than all else of its description.
 */
import { FIRST_BLOCK, type Layer, type Opening, type VisionLayer } from "#core/wire-state.ts";
import { byteAt, float64At } from "#lib/at.ts";
import type { RelayMemory } from "./relay-memory.ts";
import { LAYER_CONTEXTS, WIRE_NUMBERS, type WireMessage, type WireSpec } from "./wire-spec.ts";

/** A double is exact for as many. */
const MOST_BYTES = 6;
/** Of a user, which Vision says first. */
const ID_BYTES = 16;
const ID_WORDS = Math.ceil(ID_BYTES / MOST_BYTES);

/**
 * The last words in front of the contexts of layers: how many bytes, these as one number, the first one on top, and in front of
 * both the id of a client that pads, in as many words as it takes.
 */
const BYTES = LAYER_CONTEXTS - 1;
const SIZE = LAYER_CONTEXTS - 2;
const ID = SIZE - ID_WORDS;
/** Added to the size of the bytes where there is an id. */
const PADDED = MOST_BYTES + 1;

/** False: there is more to be said of the wire. */
export function writeShortLayer(
  { wireNumbers }: RelayMemory,
  index: number,
  { numbers, unread, layers, details, under }: WireSpec,
): boolean {
  const only = layers?.length === 1 ? layers[0] : undefined;
  if (only === undefined || unread !== null || details !== undefined || under !== undefined) return false;
  const ours = firstBytesOf(only);
  if (ours === null || ours.length > MOST_BYTES || numbers.length > ID) return false;
  const start = index * WIRE_NUMBERS;
  wireNumbers[start + SIZE] = ours.length + (only.kind === "vision" ? PADDED : 0);
  wireNumbers[start + BYTES] = pack(ours, 0, ours.length);
  if (only.kind !== "vision") return true;
  for (let at = 0; at < ID_WORDS; at++) {
    const from = at * MOST_BYTES;
    wireNumbers[start + ID + at] = pack(only.id, from, Math.min(from + MOST_BYTES, ID_BYTES));
  }
  return true;
}

/** Null: there is more to be said of the layer. */
function firstBytesOf(layer: Layer): Uint8Array | null {
  if (layer.kind === "vision") return isFresh(layer) ? (layer.writing?.opening ?? null) : null;
  return layer.kind === "opening" && isPlain(layer) ? layer.ours : null;
}

const isPlain = ({ isOwed, afterMs, theirs }: Opening): boolean =>
  !isOwed && afterMs === undefined && theirs === null;

/** Of a server, and nothing has gone either way. */
function isFresh({ role, id, mayLeave, reading, writing }: VisionLayer): boolean {
  const isWhole = reading === FIRST_BLOCK && writing?.isFirst === true && writing.afterMs === undefined;
  return isWhole && role === "server" && mayLeave && id.length === ID_BYTES;
}

function pack(bytes: Uint8Array, from: number, to: number): number {
  let packed = 0;
  for (let at = from; at < to; at++) packed = packed * 256 + byteAt(bytes, at);
  return packed;
}

export function readShortLayer({ wireNumbers }: RelayMemory, index: number): WireMessage {
  const start = index * WIRE_NUMBERS;
  const size = float64At(wireNumbers, start + SIZE);
  const isPadded = size >= PADDED;
  const ours = new Uint8Array(isPadded ? size - PADDED : size);
  unpack(float64At(wireNumbers, start + BYTES), ours, 0, ours.length);
  if (!isPadded) return onlyLayer({ kind: "opening", ours, isOwed: false, theirs: null });
  const id = new Uint8Array(ID_BYTES);
  for (let at = 0; at < ID_WORDS; at++) {
    const from = at * MOST_BYTES;
    unpack(float64At(wireNumbers, start + ID + at), id, from, Math.min(from + MOST_BYTES, ID_BYTES));
  }
  const writing = { opening: ours, isFirst: true };
  return onlyLayer({ kind: "vision", role: "server", id, mayLeave: true, reading: FIRST_BLOCK, writing });
}

const onlyLayer = (layer: Layer): WireMessage => ({ unread: null, layers: [layer], details: {} });

function unpack(packed: number, into: Uint8Array, from: number, to: number): void {
  for (let at = to - 1; at >= from; at--) {
    into[at] = packed % 256;
    packed = Math.floor(packed / 256);
  }
}
