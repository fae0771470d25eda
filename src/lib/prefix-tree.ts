import { uint32At, int32At } from "./at.ts";
import { sharedInt32, sharedUint32 } from "./shared-arrays.ts";
import type { Steps } from "./steps.ts";

// A node: BITS HEAD CHILD0 CHILD1 UP KEY(1 or 4), one 32-bit word each. HEAD is the first item plus one, 0: none. A
// child is the index where its node starts, 0: none, because the root starts there and is no node's child. UP is the
// nearest node above that has items, else the root.

const HEAD = 1;
const CHILD = 2;
const UP = 4;
const KEY = 5;

/** From this many items on, a table over the first 16 bits says where to begin: 256 KiB for some ten steps less. */
const JUMP_FROM = 2048;
const JUMP_BITS = 16;

/** Nodes that are sealed in one step. */
const STEP = 1024;

/** All that a sealed tree is: arrays of numbers in shared memory, so that every thread can have a tree of the same ones. */
export interface PrefixTreeParts {
  readonly words: 1 | 4;
  readonly nodes: Uint32Array;
  readonly next: Int32Array;
  readonly jump: Uint32Array | null;
}

/**
 * A path-compressed binary tree of prefixes in one flat array: 24 or 36 bytes a node, side by side so that a step costs
 * a cache line, at most two nodes a prefix. Items are numbers from 0; equal prefixes chain them in ascending order.
 */
export class PrefixTree {
  readonly #words: 1 | 4;
  #nodes: Uint32Array;
  /** Where the next node will start. */
  #end: number;
  readonly #next: Int32Array;
  /** By the first bits of a key: the deepest node that they decide. */
  readonly #jump: Uint32Array | null;

  /** `words`: 1 for IPv4, 4 for IPv6. `items`: how many items exist at most. */
  constructor(words: 1 | 4, items: number, sealed: PrefixTreeParts | null = null) {
    this.#words = words;
    this.#end = KEY + words;
    this.#nodes = sealed?.nodes ?? new Uint32Array(this.#end * Math.min(16, items + 1));
    this.#next = sealed?.next ?? sharedInt32(items).fill(-1);
    this.#jump = sealed?.jump ?? (items < JUMP_FROM || sealed !== null ? null : sharedUint32(1 << JUMP_BITS));
  }

  /** The tree whose parts these are. It keeps them, and nothing can be inserted. */
  static of(parts: PrefixTreeParts): PrefixTree {
    return new PrefixTree(parts.words, parts.next.length, parts);
  }

  /** After `seal`. */
  get parts(): PrefixTreeParts {
    return { words: this.#words, nodes: this.#nodes, next: this.#next, jump: this.#jump };
  }

  get sizeBytes(): number {
    return this.#nodes.byteLength + this.#next.byteLength + (this.#jump?.byteLength ?? 0);
  }

  /** Insert from the last item to the first: a chain then ascends. */
  insert(key: Uint32Array, bits: number, item: number): void {
    const node = this.#nodeFor(key, bits);
    this.#next[item] = this.#head(node);
    this.#nodes[node + HEAD] = item + 1;
  }

  /** After the last insertion, before the first question. */
  *seal(): Steps<void> {
    const open: { readonly node: number; readonly up: number }[] = [{ node: 0, up: 0 }];
    for (let done = 1; ; done++) {
      const next = open.pop();
      if (next === undefined) break;
      const up = this.#link(next.node, next.up);
      for (const turn of [0, 1]) {
        const child = uint32At(this.#nodes, next.node + CHILD + turn);
        if (child !== 0) open.push({ node: child, up });
      }
      if (done % STEP === 0) yield;
    }
    const grown = this.#nodes.subarray(0, this.#end);
    this.#nodes = sharedUint32(this.#end);
    this.#nodes.set(grown);
  }

  /** The first item of the longest prefix that holds the key; -1: none. */
  longest(key: Uint32Array): number {
    for (let node = this.#deepest(key); ; node = uint32At(this.#nodes, node + UP)) {
      const head = this.#head(node);
      if (head >= 0 || node === 0) return head;
    }
  }

  /** The lowest item greater than `after`, and not marked in `skip`, whose prefix holds the key; -1: none. */
  lowest(key: Uint32Array, after: number, skip: Uint8Array | null): number {
    let found = -1;
    for (let node = this.#deepest(key); ; node = uint32At(this.#nodes, node + UP)) {
      let item = this.#head(node);
      while (item >= 0 && (item <= after || skip?.[item] === 1)) item = int32At(this.#next, item);
      if (item >= 0 && (found < 0 || item < found)) found = item;
      if (node === 0) return found;
    }
  }

  /** The longest node, with items or without, whose prefix holds the key. */
  #deepest(key: Uint32Array): number {
    let node = this.#jump?.[uint32At(key, 0) >>> (32 - JUMP_BITS)] ?? 0;
    for (let child = this.#step(node, key); child !== 0; child = this.#step(node, key)) node = child;
    return node;
  }

  /** Answers with what the nodes below have above them. */
  #link(node: number, up: number): number {
    this.#nodes[node + UP] = up;
    const bits = uint32At(this.#nodes, node);
    if (this.#jump !== null && bits <= JUMP_BITS) {
      const first = uint32At(this.#nodes, node + KEY) >>> (32 - JUMP_BITS);
      this.#jump.fill(node, first, first + (1 << (JUMP_BITS - bits))); // nodes below come later and overwrite
    }
    return this.#head(node) >= 0 ? node : up;
  }

  #head(node: number): number {
    return uint32At(this.#nodes, node + HEAD) - 1;
  }

  /** The child on the key's way if its prefix holds the key, else 0. */
  #step(node: number, key: Uint32Array): number {
    const bits = uint32At(this.#nodes, node);
    if (bits === this.#words * 32) return 0;
    const child = uint32At(this.#nodes, node + CHILD + bitAt(key, 0, bits));
    if (child === 0) return 0;
    const childBits = uint32At(this.#nodes, child);
    return this.#shared(child, key, childBits) === childBits ? child : 0;
  }

  /** How many leading bits, `limit` at most, the node's key shares with `key`. */
  #shared(node: number, key: Uint32Array, limit: number): number {
    for (let word = 0; word * 32 < limit; word++) {
      const difference = uint32At(this.#nodes, node + KEY + word) ^ uint32At(key, word);
      if (difference !== 0) return Math.min(limit, word * 32 + Math.clz32(difference));
    }
    return limit;
  }

  #nodeFor(key: Uint32Array, bits: number): number {
    for (let node = 0; ;) {
      const here = uint32At(this.#nodes, node);
      if (here === bits) return node;
      const turn = bitAt(key, 0, here);
      const child = uint32At(this.#nodes, node + CHILD + turn);
      if (child === 0) return this.#attach(node, turn, this.#make(key, bits));
      const childBits = uint32At(this.#nodes, child);
      const shared = this.#shared(child, key, Math.min(bits, childBits));
      if (shared === childBits) {
        node = child;
        continue;
      }
      const fork = this.#attach(node, turn, this.#make(key, shared));
      const side = bitAt(this.#nodes, child + KEY, shared);
      this.#attach(fork, side, child);
      return shared === bits ? fork : this.#attach(fork, 1 - side, this.#make(key, bits));
    }
  }

  #attach(parent: number, turn: number, child: number): number {
    this.#nodes[parent + CHILD + turn] = child;
    return child;
  }

  #make(key: Uint32Array, bits: number): number {
    const node = this.#end;
    this.#end += KEY + this.#words;
    if (this.#end > this.#nodes.length) {
      const grown = new Uint32Array(Math.max(this.#end, this.#nodes.length * 2));
      grown.set(this.#nodes);
      this.#nodes = grown;
    }
    this.#nodes[node] = bits;
    for (let word = 0; word < this.#words; word++) {
      const keep = Math.max(0, Math.min(32, bits - word * 32));
      this.#nodes[node + KEY + word] = keep === 0 ? 0 : uint32At(key, word) & (-1 << (32 - keep));
    }
    return node;
  }
}

/** Bit `at`, from the most significant, of the key whose words start at `from`. */
function bitAt(words: Uint32Array, from: number, at: number): number {
  return (uint32At(words, from + (at >> 5)) >>> (31 - (at & 31))) & 1;
}
