import { newState, type Sha256State, type Sha256States } from "./sha256-states.ts";

/** Behind the key of an HMAC, inside and outside (RFC 2104). */
interface KeyStates {
  readonly inner: Sha256State;
  readonly outer: Sha256State;
}

const INNER_PAD = 0x36;
const OUTER_PAD = 0x5c;

/**
 * HMACs in one another: the innermost is HMAC-SHA-256 under a fixed key, and each further key makes an HMAC whose hash is the
 * one before. All of it comes down to digests that begin with one of a few rows of keys, so a row is hashed once.
 */
export class NestedHmac {
  readonly #sha256: Sha256States;
  readonly #root: KeyStates;
  readonly #labels = new Map<string, KeyStates>();
  /** Of the keys behind the label, overwritten by each call. */
  readonly #later: KeyStates[] = [];

  constructor(sha256: Sha256States, root: Uint8Array) {
    this.#sha256 = sha256;
    this.#root = {
      inner: sha256.behindKey(root, INNER_PAD),
      outer: sha256.behindKey(root, OUTER_PAD),
    };
  }

  /**
   * 32 bytes, in memory that the next call overwrites. `data`: at most 55 bytes. The first key is one of a few labels, of
   * which the states are kept; keys have at most 64 bytes.
   */
  of(data: Uint8Array, label: string, keys: readonly Uint8Array[]): Uint8Array {
    const first = this.#labelled(label);
    let { inner } = first;
    for (const [index, key] of keys.entries()) inner = this.#under(inner, key, index).inner;
    const depth = 1 + keys.length;
    let digest = this.#hmac(data, inner, depth);
    // An HMAC takes two of the one inside of it. In the order in which they come, the n-th of the innermost ends an HMAC of
    // as many levels as n has zeros at its end, and one more.
    for (let n = 1; n < 2 ** depth; n++) {
      const level = 32 - Math.clz32(n & -n);
      const { outer } = level === 1 ? first : (this.#later[level - 2] ?? first);
      digest = this.#hmac(digest, outer, level);
    }
    return digest;
  }

  /** The innermost one, of `blocks` keys and the data. */
  #hmac(data: Uint8Array, from: Sha256State, blocks: number): Uint8Array {
    return this.#sha256.finish(this.#sha256.finish(data, from, 1 + blocks), this.#root.outer, 1);
  }

  #labelled(label: string): KeyStates {
    const known = this.#labels.get(label);
    if (known !== undefined) return known;
    const made = newStates();
    this.#write(made, this.#root.inner, Buffer.from(label));
    this.#labels.set(label, made);
    return made;
  }

  #under(from: Sha256State, key: Uint8Array, index: number): KeyStates {
    const states = (this.#later[index] ??= newStates());
    this.#write(states, from, key);
    return states;
  }

  #write({ inner, outer }: KeyStates, from: Sha256State, key: Uint8Array): void {
    this.#sha256.behindKey(key, INNER_PAD, from, inner);
    this.#sha256.behindKey(key, OUTER_PAD, from, outer);
  }
}

const newStates = (): KeyStates => ({ inner: newState(), outer: newState() });
