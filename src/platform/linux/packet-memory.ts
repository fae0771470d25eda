/** Memory that foreign functions write to, whose addresses are given to them without a new BigInt for each call. */

/** Offsets and lengths below it are remembered: a packet of an ordinary way is shorter. */
const REMEMBERED = 4096;

/** Numbers as machine words (see machine-words.ts), added to one base. */
export class Words {
  readonly #base: bigint;
  readonly #known: (bigint | undefined)[] = [];

  constructor(base: bigint) {
    this.#base = base;
  }

  /** `base + value`, for a whole number that is not negative. */
  of(value: number): bigint {
    if (value >= REMEMBERED) return this.#base + BigInt(value);
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
    this.addresses = new Words(address);
  }
}
