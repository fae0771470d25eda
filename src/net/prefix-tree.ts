/**
 * A path-compressed binary tree of prefixes in flat arrays: 13 bytes a node beside the key, at most two nodes a prefix.
 * Items are numbers from 0; equal prefixes chain their items in ascending order.
 */
export class PrefixTree {
  readonly #width: number;
  /** Key words of a node, `#width` each. */
  #keys: Uint32Array;
  #bits: Uint8Array;
  /** Two a node; 0 is "none", for node 0 is the root and nobody's child. */
  #children: Uint32Array;
  /** First item of a node, -1: none. */
  #heads: Int32Array;
  #count = 1;
  readonly #next: Int32Array;

  /** `words`: 1 for IPv4, 4 for IPv6. `items`: how many items exist at most. */
  constructor(words: 1 | 4, items: number) {
    this.#width = words;
    const room = 16;
    this.#keys = new Uint32Array(room * words);
    this.#bits = new Uint8Array(room);
    this.#children = new Uint32Array(room * 2);
    this.#heads = new Int32Array(room).fill(-1);
    this.#next = new Int32Array(items).fill(-1);
  }

  get sizeBytes(): number {
    const arrays = [this.#keys, this.#bits, this.#children, this.#heads, this.#next];
    return arrays.reduce((sum, array) => sum + array.byteLength, 0);
  }

  /** Insert from the last item to the first: a chain then ascends. */
  insert(key: Uint32Array, bits: number, item: number): void {
    const node = this.#nodeFor(key, bits);
    this.#next[item] = this.#heads[node] as number;
    this.#heads[node] = item;
  }

  /** The first item of the longest prefix that holds the key; -1: none. */
  longest(key: Uint32Array): number {
    let found = -1;
    for (let node = 0; ;) {
      const head = this.#heads[node] as number;
      if (head >= 0) found = head;
      node = this.#step(node, key);
      if (node === 0) return found;
    }
  }

  /** Does any prefix hold the key? */
  holds(key: Uint32Array): boolean {
    for (let node = 0; ;) {
      if ((this.#heads[node] as number) >= 0) return true;
      node = this.#step(node, key);
      if (node === 0) return false;
    }
  }

  /** The lowest item greater than `after`, and not marked in `skip`, whose prefix holds the key; -1: none. */
  lowest(key: Uint32Array, after: number, skip: Uint8Array | null): number {
    let found = -1;
    for (let node = 0; ;) {
      let item = this.#heads[node] as number;
      while (item >= 0 && (item <= after || skip?.[item] === 1)) item = this.#next[item] as number;
      if (item >= 0 && (found < 0 || item < found)) found = item;
      node = this.#step(node, key);
      if (node === 0) return found;
    }
  }

  /** The child on the key's way if its prefix holds the key, else 0. */
  #step(node: number, key: Uint32Array): number {
    const bits = this.#bits[node] as number;
    if (bits === this.#width * 32) return 0;
    const turn = ((key[bits >> 5] as number) >>> (31 - (bits & 31))) & 1;
    const child = this.#children[node * 2 + turn] as number;
    return child !== 0 && this.#shared(child, key, this.#bits[child] as number) === this.#bits[child]
      ? child
      : 0;
  }

  /** How many leading bits, `limit` at most, the node's key shares with `key`. */
  #shared(node: number, key: Uint32Array, limit: number): number {
    const base = node * this.#width;
    for (let word = 0; word * 32 < limit; word++) {
      const difference = (this.#keys[base + word] as number) ^ (key[word] as number);
      if (difference !== 0) return Math.min(limit, word * 32 + Math.clz32(difference));
    }
    return limit;
  }

  #nodeFor(key: Uint32Array, bits: number): number {
    for (let node = 0; ;) {
      const here = this.#bits[node] as number;
      if (here === bits) return node;
      const turn = ((key[here >> 5] as number) >>> (31 - (here & 31))) & 1;
      const child = this.#children[node * 2 + turn] as number;
      if (child === 0) return this.#attach(node, turn, this.#make(key, bits));
      const childBits = this.#bits[child] as number;
      const shared = this.#shared(child, key, Math.min(bits, childBits));
      if (shared === childBits) {
        node = child;
        continue;
      }
      const fork = this.#attach(node, turn, this.#make(key, shared));
      const side = ((this.#keys[child * this.#width + (shared >> 5)] as number) >>> (31 - (shared & 31))) & 1;
      this.#attach(fork, side, child);
      return shared === bits ? fork : this.#attach(fork, 1 - side, this.#make(key, bits));
    }
  }

  #attach(parent: number, turn: number, child: number): number {
    this.#children[parent * 2 + turn] = child;
    return child;
  }

  #make(key: Uint32Array, bits: number): number {
    if (this.#count === this.#bits.length) this.#grow();
    const node = this.#count++;
    for (let word = 0; word < this.#width; word++) {
      const keep = Math.max(0, Math.min(32, bits - word * 32));
      this.#keys[node * this.#width + word] = keep === 0 ? 0 : (key[word] as number) & (-1 << (32 - keep));
    }
    this.#bits[node] = bits;
    this.#heads[node] = -1;
    return node;
  }

  #grow(): void {
    const room = this.#bits.length * 2;
    const keys = new Uint32Array(room * this.#width);
    const children = new Uint32Array(room * 2);
    const bits = new Uint8Array(room);
    const heads = new Int32Array(room);
    keys.set(this.#keys);
    children.set(this.#children);
    bits.set(this.#bits);
    heads.set(this.#heads);
    [this.#keys, this.#children, this.#bits, this.#heads] = [keys, children, bits, heads];
  }
}
