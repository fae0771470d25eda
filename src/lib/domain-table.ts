/** Positions by domain name: a hash of name suffixes in flat arrays, about 35 bytes a name beside its text. */
import { byteAt, int32At, itemAt, uint32At } from "./at.ts";
import { sharedBytes, sharedInt32, sharedUint32 } from "./shared-arrays.ts";
import { atOnce, type Steps } from "./steps.ts";

/** The name itself, ranked before every wildcard. */
export const EXACT = 1;
/** Every name below, at any depth. */
export const BELOW = 2;
/** The name itself, ranked as part of a suffix (`+.a.com`). */
export const APEX = 4;
export const SUFFIX = BELOW | APEX;

const DOT = 46;
/** Names that are inserted in one step: some tenth of a millisecond. */
const STEP = 256;

/** All that a table is: arrays of numbers in shared memory, so that every thread can have a table of the same ones. */
export interface DomainTableParts {
  readonly seed: number;
  readonly text: Uint8Array;
  /** Per name: where its text starts (one more than names), its hash, its first item. */
  readonly starts: Uint32Array;
  readonly hashes: Int32Array;
  readonly heads: Int32Array;
  /** Name number plus one; 0: free. At most half full. */
  readonly slots: Uint32Array;
  readonly next: Int32Array;
  readonly covers: Uint8Array;
}

/**
 * Names are lower-case ASCII. A lookup hashes the host once from its end and probes at every dot; hashes are seeded,
 * so a list cannot be written to collide. Items of one name chain in ascending order.
 */
export class DomainTable {
  readonly parts: DomainTableParts;
  readonly size: number;
  readonly #seed: number;
  readonly #text: Uint8Array;
  readonly #starts: Uint32Array;
  readonly #hashes: Int32Array;
  readonly #heads: Int32Array;
  readonly #slots: Uint32Array;
  readonly #next: Int32Array;
  readonly #covers: Uint8Array;
  #names = 0;

  /** The table whose parts these are. It keeps them: another thread may have built them. */
  constructor(parts: DomainTableParts) {
    this.parts = parts;
    this.size = parts.covers.length;
    this.#seed = parts.seed;
    this.#text = parts.text;
    this.#starts = parts.starts;
    this.#hashes = parts.hashes;
    this.#heads = parts.heads;
    this.#slots = parts.slots;
    this.#next = parts.next;
    this.#covers = parts.covers;
  }

  /** `covers[i]` says by EXACT, BELOW, APEX which hosts `names[i]` matches. */
  static of(names: readonly string[], covers: Uint8Array): DomainTable {
    return atOnce(DomainTable.build(names, covers));
  }

  /** The same in steps. */
  static *build(names: readonly string[], covers: Uint8Array): Steps<DomainTable> {
    const count = names.length;
    let textBytes = 0;
    for (let at = 0; at < count; at++) {
      textBytes += itemAt(names, at).length;
      if (at % STEP === 0) yield;
    }
    const table = new DomainTable({
      seed: Math.floor(Math.random() * 0x1_0000_0000) | 0,
      text: sharedBytes(textBytes),
      starts: sharedUint32(count + 1),
      hashes: sharedInt32(count),
      heads: sharedInt32(count).fill(-1),
      slots: sharedUint32(1 << (32 - Math.clz32(Math.max(4, count * 2) - 1))),
      next: sharedInt32(count).fill(-1),
      covers: sharedBytes(count),
    });
    table.#covers.set(covers);
    for (let item = count - 1; item >= 0; item--) {
      table.#insert(itemAt(names, item), item);
      if (item % STEP === 0) yield;
    }
    return table;
  }

  get sizeBytes(): number {
    const arrays = [
      this.#text,
      this.#starts,
      this.#hashes,
      this.#heads,
      this.#slots,
      this.#next,
      this.#covers,
    ];
    return arrays.reduce((sum, array) => sum + array.byteLength, 0);
  }

  isExact(item: number): boolean {
    return (byteAt(this.#covers, item) & EXACT) !== 0;
  }

  /** The most specific item: the exact name, the name as a suffix, then the longest suffix; -1: none. */
  find(host: string): number {
    let found = -1;
    let hash = this.#seed;
    for (let at = host.length - 1; at >= 0; at--) {
      const code = host.charCodeAt(at);
      if (code === DOT) {
        const below = this.#item(this.#nameAt(hash, host, at + 1), BELOW, -1, null);
        if (below >= 0) found = below;
      }
      hash = mix(hash, code);
    }
    const name = this.#nameAt(hash, host, 0);
    const exact = this.#item(name, EXACT, -1, null);
    if (exact >= 0) return exact;
    const apex = this.#item(name, APEX, -1, null);
    return apex >= 0 ? apex : found;
  }

  /** The lowest item greater than `after`, and not marked in `skip`, that covers the host; -1: none. */
  lowest(host: string, after = -1, skip: Uint8Array | null = null): number {
    let found = -1;
    let hash = this.#seed;
    for (let at = host.length - 1; at >= -1; at--) {
      const code = at < 0 ? DOT : host.charCodeAt(at);
      if (code === DOT) {
        const name = this.#nameAt(hash, host, at + 1);
        const item = name < 0 ? -1 : this.#item(name, at < 0 ? EXACT | APEX : BELOW, after, skip);
        if (item >= 0 && (found < 0 || item < found)) found = item;
      }
      hash = mix(hash, code);
    }
    return found;
  }

  #item(name: number, covers: number, after: number, skip: Uint8Array | null): number {
    let item = name < 0 ? -1 : int32At(this.#heads, name);
    while (item >= 0 && (item <= after || (byteAt(this.#covers, item) & covers) === 0 || skip?.[item] === 1))
      item = int32At(this.#next, item);
    return item;
  }

  /** Number of the name that equals the host from `from` on; -1: none. */
  #nameAt(hash: number, host: string, from: number): number {
    const mask = this.#slots.length - 1;
    for (let slot = spread(hash) & mask; ; slot = (slot + 1) & mask) {
      const name = uint32At(this.#slots, slot) - 1;
      if (name < 0) return -1;
      if (this.#hashes[name] === hash && this.#equals(name, host, from)) return name;
    }
  }

  #equals(name: number, host: string, from: number): boolean {
    const start = uint32At(this.#starts, name);
    const length = uint32At(this.#starts, name + 1) - start;
    if (length !== host.length - from) return false;
    for (let at = 0; at < length; at++)
      if (this.#text[start + at] !== host.charCodeAt(from + at)) return false;
    return true;
  }

  #insert(text: string, item: number): void {
    let hash = this.#seed;
    for (let at = text.length - 1; at >= 0; at--) hash = mix(hash, text.charCodeAt(at));
    let name = this.#nameAt(hash, text, 0);
    if (name < 0) name = this.#add(text, hash);
    this.#next[item] = int32At(this.#heads, name);
    this.#heads[name] = item;
  }

  #add(text: string, hash: number): number {
    const name = this.#names++;
    const start = uint32At(this.#starts, name);
    for (let at = 0; at < text.length; at++) this.#text[start + at] = text.charCodeAt(at);
    this.#starts[name + 1] = start + text.length;
    this.#hashes[name] = hash;
    const mask = this.#slots.length - 1;
    let slot = spread(hash) & mask;
    while (this.#slots[slot] !== 0) slot = (slot + 1) & mask;
    this.#slots[slot] = name + 1;
    return name;
  }
}

function mix(hash: number, code: number): number {
  return Math.imul(hash ^ code, 0x01000193); // FNV-1a (RFC 9923), from the end of the name
}

function spread(hash: number): number {
  const mixed = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return mixed ^ (mixed >>> 13);
}
