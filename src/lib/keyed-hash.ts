/** HalfSipHash-2-4 (Aumasson, Bernstein): who does not know the key cannot choose inputs that fall together in a table. */
import { byteAt, int32At } from "./at.ts";

const KEY_BYTES = 8;

export class KeyedHash {
  readonly #key: Int32Array;
  readonly #state = new Int32Array(4);

  /** `key`: 8 random bytes. */
  constructor(key: Uint8Array) {
    if (key.length !== KEY_BYTES) throw new RangeError(`a key of ${key.length} bytes`);
    const view = new DataView(key.buffer, key.byteOffset, KEY_BYTES);
    this.#key = Int32Array.of(view.getInt32(0, true), view.getInt32(4, true));
  }

  /** 32 bits of so many bytes from `at` on. */
  of(bytes: Uint8Array, at: number, length: number): number {
    const state = this.#state;
    const [first, second] = [int32At(this.#key, 0), int32At(this.#key, 1)];
    state[0] = first;
    state[1] = second;
    state[2] = 0x6c796765 ^ first;
    state[3] = 0x74656462 ^ second;
    const whole = length & ~3;
    for (let index = 0; index < whole; index += 4) this.#mix(wordAt(bytes, at + index, 4));
    this.#mix(wordAt(bytes, at + whole, length - whole) | (length << 24));
    state[2] ^= 0xff;
    for (let round = 0; round < 4; round++) turn(state);
    return (int32At(state, 1) ^ int32At(state, 3)) >>> 0;
  }

  #mix(word: number): void {
    const state = this.#state;
    state[3] = int32At(state, 3) ^ word;
    turn(state);
    turn(state);
    state[0] = int32At(state, 0) ^ word;
  }
}

function wordAt(bytes: Uint8Array, at: number, count: number): number {
  let word = 0;
  for (let index = 0; index < count; index++) word |= byteAt(bytes, at + index) << (8 * index);
  return word;
}

function turn(state: Int32Array): void {
  let v0 = int32At(state, 0);
  let v1 = int32At(state, 1);
  let v2 = int32At(state, 2);
  let v3 = int32At(state, 3);
  v0 = (v0 + v1) | 0;
  v1 = rotated(v1, 5) ^ v0;
  v0 = rotated(v0, 16);
  v2 = (v2 + v3) | 0;
  v3 = rotated(v3, 8) ^ v2;
  v0 = (v0 + v3) | 0;
  v3 = rotated(v3, 7) ^ v0;
  v2 = (v2 + v1) | 0;
  v1 = rotated(v1, 13) ^ v2;
  v2 = rotated(v2, 16);
  state[0] = v0;
  state[1] = v1;
  state[2] = v2;
  state[3] = v3;
}

function rotated(word: number, bits: number): number {
  return (word << bits) | (word >>> (32 - bits));
}
