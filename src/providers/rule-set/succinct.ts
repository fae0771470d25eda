/** The tree of names in MRS files: a LOUDS-like trie over the reversed characters of the patterns (configuration.md §14). */
import { ProtocolError } from "#core/errors.ts";
import { uint32At, byteAt, itemAt } from "#lib/at.ts";

/**
 * The stored form of a tree. A node's children are zeros in `bitmap`, closed by a one; nodes are in breadth-first
 * order.
 */
export interface SuccinctTree {
  /** Bit per node: a pattern ends here. */
  readonly leaves: Uint8Array;
  readonly bitmap: Uint8Array;
  /** The character that leads to node 1, 2, …. */
  readonly labels: Uint8Array;
}

/** `+.` before the longest host name. */
const LONGEST_KEY = 255;
/** All patterns together: a small file must not unfold into gigabytes. At the bound the file is refused. */
const MOST_CHARACTERS = 64 * 1024 * 1024;

/**
 * The patterns, in the order of the tree. Readers look for `+` only behind a dot, so `+.a.com` is in a tree twice, as
 * itself and as `a.com`: the second is left out. Throws `ProtocolError`.
 */
export function decodeTree({ leaves, bitmap, labels }: SuccinctTree): string[] {
  const nodes = labels.length + 1;
  if (leaves.length * 8 < nodes || bitmap.length * 8 < 2 * nodes - 1)
    throw new ProtocolError("the tree of names is cut short");
  const parents = parentsOf(bitmap, nodes);
  const covered = coveredLeaves(leaves, labels, parents);
  const key = Buffer.alloc(LONGEST_KEY);
  const patterns: string[] = [];
  let characters = 0;
  for (let leaf = 0; leaf < nodes; leaf++) {
    if (!bitAt(leaves, leaf) || covered[leaf] === 1) continue;
    let length = 0;
    let ascii = true;
    for (let node = leaf; node !== 0; node = uint32At(parents, node)) {
      if (length === LONGEST_KEY) throw new ProtocolError("the tree of names holds one that is too long");
      const label = byteAt(labels, node - 1);
      if (label >= 0x80) ascii = false;
      key[length++] = label;
    }
    characters += length;
    if (characters > MOST_CHARACTERS) throw new ProtocolError("the tree of names unfolds into too much text");
    patterns.push(ascii ? key.toString("latin1", 0, length) : fromReversedRunes(key.subarray(0, length)));
  }
  return patterns;
}

const PLUS = 43;
const DOT = 46;

/** 1 for every node below which `.+` ends a pattern. */
function coveredLeaves(leaves: Uint8Array, labels: Uint8Array, parents: Uint32Array): Uint8Array {
  const covered = new Uint8Array(parents.length);
  for (let node = 1; node < parents.length; node++) {
    const parent = uint32At(parents, node);
    if (labels[node - 1] !== PLUS || parent === 0 || labels[parent - 1] !== DOT || !bitAt(leaves, node))
      continue;
    covered[uint32At(parents, parent)] = 1;
  }
  return covered;
}

/** Characters were reversed as a whole, so the bytes of each are in order within the reversed text. */
function fromReversedRunes(bytes: Uint8Array): string {
  return Array.from(Buffer.from(bytes.toReversed()).toString("utf8")).toReversed().join("");
}

function parentsOf(bitmap: Uint8Array, nodes: number): Uint32Array {
  const parents = new Uint32Array(nodes);
  let child = 1;
  let at = 0;
  for (let node = 0; node < nodes; node++) {
    if (node >= child && node > 0) throw new ProtocolError("the tree of names has a node without a parent");
    while (at < bitmap.length * 8 && !bitAt(bitmap, at)) {
      if (child === nodes) throw new ProtocolError("the tree of names has more branches than names");
      parents[child++] = node;
      at++;
    }
    at++;
  }
  return parents;
}

/** The tree over patterns of ASCII text. */
export function encodeTree(patterns: readonly string[]): SuccinctTree {
  const keys = [...new Set(patterns)].map((pattern) => Buffer.from(pattern, "latin1").reverse());
  keys.sort(Buffer.compare);
  const leaves = new BitWriter();
  const bitmap = new BitWriter();
  const labels: number[] = [];
  // A node is a run of keys that share their first `depth` characters.
  const queue: [first: number, end: number, depth: number][] = [[0, keys.length, 0]];
  for (let node = 0; node < queue.length; node++) {
    let [first] = itemAt(queue, node);
    const [, end, depth] = itemAt(queue, node);
    const ends = first < end && keys[first]?.length === depth;
    leaves.push(ends);
    if (ends) first++;
    while (first < end) {
      const label = keys[first]?.[depth] as number;
      let next = first + 1;
      while (next < end && keys[next]?.[depth] === label) next++;
      queue.push([first, next, depth + 1]);
      labels.push(label);
      bitmap.push(false);
      first = next;
    }
    bitmap.push(true);
  }
  return { leaves: leaves.bytes(), bitmap: bitmap.bytes(), labels: Uint8Array.from(labels) };
}

// Words of 64 bits, big-endian, their bits numbered from the least significant one.
function bitAt(words: Uint8Array, bit: number): boolean {
  return ((byteAt(words, byteOf(bit)) >> (bit & 7)) & 1) === 1;
}

function byteOf(bit: number): number {
  return (bit >> 6) * 8 + 7 - ((bit >> 3) & 7);
}

class BitWriter {
  #bytes = new Uint8Array(1024);
  #count = 0;

  push(bit: boolean): void {
    const at = byteOf(this.#count);
    if (at >= this.#bytes.length) {
      const grown = new Uint8Array(this.#bytes.length * 2);
      grown.set(this.#bytes);
      this.#bytes = grown;
    }
    if (bit) this.#bytes[at] = byteAt(this.#bytes, at) | (1 << (this.#count & 7));
    this.#count++;
  }

  /** Whole words. */
  bytes(): Uint8Array {
    return this.#bytes.subarray(0, Math.ceil(this.#count / 64) * 8);
  }
}
