/** Memory that foreign functions write to, whose addresses are given to them without a new BigInt for each call. */

/** Whole numbers as machine words (see machine-words.ts), added to one base; each is made once. */
export class Words {
  readonly #base: bigint;
  readonly #known: (bigint | undefined)[];

  /** Of the numbers from 0 to `most`. */
  constructor(base: bigint, most: number) {
    this.#base = base;
    this.#known = Array.from({ length: most + 1 }); // with gaps it would be a table of hashes
  }

  /** `base + value`. */
  of(value: number): bigint {
    return (this.#known[value] ??= this.#base + BigInt(value));
  }
}

/** Stays where it is as long as it is held. */
export class PacketMemory {
  readonly bytes: Uint8Array;
  /** The address of the byte at an offset. */
  readonly addresses: Words;

  /** `address`: of the first of the bytes. */
  constructor(bytes: Uint8Array, address: bigint) {
    this.bytes = bytes;
    this.addresses = new Words(address, bytes.length);
  }
}
