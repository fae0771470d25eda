/** Networks by address: longest prefix, any match, or the lowest position, in well under a microsecond. */
import type { NetworkTable } from "#core/condition.ts";
import type { Ip } from "#core/session.ts";
import type { Cidr } from "./cidr.ts";
import { IpReader } from "./ip-reader.ts";
import { PrefixTree } from "#lib/prefix-tree.ts";
import { atOnce, type Steps } from "#lib/steps.ts";

/** Networks that are inserted in one step. */
const STEP = 256;

/** Positions by network: answers with the position of a network in the list it was made from. Families never mix. */
export class CidrTable {
  #size = 0;
  #v4 = new PrefixTree(1, 0);
  #v6 = new PrefixTree(4, 0);
  readonly #reader = new IpReader();

  constructor(cidrs: readonly Cidr[]) {
    atOnce(this.#fill(cidrs));
  }

  /** The same in steps. */
  static *build(cidrs: readonly Cidr[]): Steps<CidrTable> {
    const table = new CidrTable([]);
    yield* table.#fill(cidrs);
    return table;
  }

  *#fill(cidrs: readonly Cidr[]): Steps<void> {
    this.#size = cidrs.length;
    const has = (length: number) => cidrs.some(({ bytes }) => bytes.length === length);
    this.#v4 = new PrefixTree(1, has(4) ? cidrs.length : 0);
    this.#v6 = new PrefixTree(4, has(16) ? cidrs.length : 0);
    for (let at = cidrs.length - 1; at >= 0; at--) {
      const { bytes, bits } = cidrs[at] as Cidr;
      const family = this.#reader.readBytes(bytes);
      if (family === 0) throw new RangeError(`a network has 4 or 16 bytes, not ${bytes.length}`);
      (family === 4 ? this.#v4 : this.#v6).insert(this.#reader.words, bits, at);
      if (at % STEP === 0) yield;
    }
    yield* this.#v4.seal();
    yield* this.#v6.seal();
  }

  /** The table whose parts these are. It keeps them: another thread may have built them. */
  static of({ size, v4, v6 }: NetworkTable): CidrTable {
    const table = new CidrTable([]);
    table.#size = size;
    table.#v4 = PrefixTree.of(v4);
    table.#v6 = PrefixTree.of(v6);
    return table;
  }

  get parts(): NetworkTable {
    return { size: this.#size, v4: this.#v4.parts, v6: this.#v6.parts };
  }

  get size(): number {
    return this.#size;
  }

  get sizeBytes(): number {
    return this.#v4.sizeBytes + this.#v6.sizeBytes;
  }

  /** Position of the longest network that holds the address (4 or 16 bytes, or text); -1: none. */
  longest(address: Ip | Uint8Array): number {
    return this.#treeFor(address)?.longest(this.#reader.words) ?? -1;
  }

  holds(address: Ip | Uint8Array): boolean {
    return this.longest(address) >= 0;
  }

  /** The lowest position greater than `after`, and not marked in `skip`, that holds the address; -1: none. */
  lowest(address: Ip | Uint8Array, after = -1, skip: Uint8Array | null = null): number {
    return this.#treeFor(address)?.lowest(this.#reader.words, after, skip) ?? -1;
  }

  #treeFor(address: Ip | Uint8Array): PrefixTree | null {
    const family = typeof address === "string" ? this.#reader.read(address) : this.#reader.readBytes(address);
    return family === 4 ? this.#v4 : family === 6 ? this.#v6 : null;
  }
}
