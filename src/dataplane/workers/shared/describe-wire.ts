import type { RelayMemory } from "./relay-memory.ts";
import { contextsOf, LAYER_CONTEXTS, WIRE_NUMBERS, type WireMessage, type WireSpec } from "./wire-spec.ts";

/**
 * Writes of a wire what both sides have to know: its kind and its numbers, by which the main thread frees what an
 * ended worker has left. What is left for the maker of the wire; null: nothing.
 */
export function describeWire(
  { kinds, owned, wireNumbers }: RelayMemory,
  index: number,
  { kind, numbers, unread, layers = [], details, under }: WireSpec,
): WireMessage | null {
  kinds[index] = owned[index] = kind;
  const start = index * WIRE_NUMBERS;
  for (const [at, number] of numbers.entries()) wireNumbers[start + at] = number;
  const sealed = layers.find((layer) => layer.kind === "sealed");
  const contexts = sealed === undefined ? [] : contextsOf(sealed);
  for (const [at, context] of contexts.entries()) wireNumbers[start + LAYER_CONTEXTS + at] = context;
  const hasMessage = unread !== null || layers.length > 0 || details !== undefined || under !== undefined;
  return hasMessage ? { unread, layers, details: details ?? {}, ...(under && { under }) } : null;
}
