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
