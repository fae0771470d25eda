/**
 * Nothing lies over most clients' wires but a few bytes of ours that go out first. They stand behind the numbers of the wire:
 * a message between threads costs more than all else of its description.
 */
import { byteAt, float64At } from "#lib/at.ts";
import type { RelayMemory } from "./relay-memory.ts";
import { LAYER_CONTEXTS, WIRE_NUMBERS, type WireMessage, type WireSpec } from "./wire-spec.ts";

/** The last two words in front of the contexts of layers: how many bytes, and these as one number, the first one on top. */
const SIZE = LAYER_CONTEXTS - 2;
const BYTES = LAYER_CONTEXTS - 1;
/** A double is exact for as many. */
const MOST_BYTES = 6;

/** False: there is more to be said of the wire. */
export function writeShortOpening(
  { wireNumbers }: RelayMemory,
  index: number,
  { numbers, unread, layers, details, under }: WireSpec,
): boolean {
  const only = layers?.length === 1 ? layers[0] : undefined;
  if (only?.kind !== "opening" || unread !== null || details !== undefined || under !== undefined)
    return false;
  const { ours, isOwed, afterMs, theirs } = only;
  const isPlain = !isOwed && afterMs === undefined && theirs === null;
  if (!isPlain || ours === null || ours.length > MOST_BYTES || numbers.length > SIZE) return false;
  let packed = 0;
  for (let at = 0; at < ours.length; at++) packed = packed * 256 + byteAt(ours, at);
  wireNumbers[index * WIRE_NUMBERS + SIZE] = ours.length;
  wireNumbers[index * WIRE_NUMBERS + BYTES] = packed;
  return true;
}

export function readShortOpening({ wireNumbers }: RelayMemory, index: number): WireMessage {
  const ours = new Uint8Array(float64At(wireNumbers, index * WIRE_NUMBERS + SIZE));
  let packed = float64At(wireNumbers, index * WIRE_NUMBERS + BYTES);
  for (let at = ours.length - 1; at >= 0; at--) {
    ours[at] = packed % 256;
    packed = Math.floor(packed / 256);
  }
  return { unread: null, layers: [{ kind: "opening", ours, isOwed: false, theirs: null }], details: {} };
}
