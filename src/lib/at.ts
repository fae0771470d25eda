/**
 * Reads of elements that are known to be there, without a cast at each. The caller answers for the index: beyond the end the
 * value is undefined, whatever the type says. One function a kind of array, because a call site that has seen many kinds
 * reads ten times as slowly: hot paths take the one of their kind, and `itemAt` is for the others.
 */

export function byteAt(bytes: Uint8Array, index: number): number {
  return bytes[index] as number;
}

export function int32At(numbers: Int32Array, index: number): number {
  return numbers[index] as number;
}

export function uint32At(numbers: Uint32Array, index: number): number {
  return numbers[index] as number;
}

export function float64At(numbers: Float64Array, index: number): number {
  return numbers[index] as number;
}

export function itemAt<Item>(list: ArrayLike<Item>, index: number): Item {
  return list[index] as Item;
}

/** The last element of a list that has one. */
export function lastOf<Item>(list: ArrayLike<Item>): Item {
  return itemAt(list, list.length - 1);
}

/** The value of a key that the map is known to have; throws a RangeError where it has none. */
export function valueAt<Key, Value extends {} | null>(map: ReadonlyMap<Key, Value>, key: Key): Value {
  const value = map.get(key);
  if (value === undefined) throw new RangeError("the map has no value for the key");
  return value;
}

/** The key that has been in a map or set for the longest time; throws a RangeError where there is none. */
export function oldestKey<Key>(keys: ReadonlyMap<Key, unknown> | ReadonlySet<Key>): Key {
  for (const key of keys.keys()) return key;
  throw new RangeError("the map or set is empty");
}
