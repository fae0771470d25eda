import type { Layer } from "#core/wire-state.ts";
import type { RelayMemory } from "./relay-memory.ts";
import { itemAt } from "#lib/at.ts";
import { contextsOf, LAYER_CONTEXTS, WIRE_NUMBERS, type WireMessage, type WireSpec } from "./wire-spec.ts";

const NO_LAYERS: readonly Layer[] = [];

/**
 * Writes of a wire what both sides have to know: its kind and its numbers, by which the main thread frees what an
 * ended worker has left. What is left for the maker of the wire; null: nothing.
 */
export function describeWire(
  { kinds, owned, wireNumbers }: RelayMemory,
  index: number,
  { kind, numbers, unread, layers = NO_LAYERS, details, under }: WireSpec,
): WireMessage | null {
  kinds[index] = owned[index] = kind;
  const start = index * WIRE_NUMBERS;
  for (let at = 0; at < numbers.length; at++) wireNumbers[start + at] = itemAt(numbers, at);
  for (const layer of layers) {
    if (layer.kind !== "sealed") continue;
    const contexts = contextsOf(layer);
    for (const [at, context] of contexts.entries()) wireNumbers[start + LAYER_CONTEXTS + at] = context;
    break; // there is room for one
  }
  const hasMessage = unread !== null || layers.length > 0 || details !== undefined || under !== undefined;
  return hasMessage ? { unread, layers, details: details ?? {}, ...(under && { under }) } : null;
}
