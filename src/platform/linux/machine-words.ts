import { itemAt } from "#lib/at.ts";

/**
 * How calls are declared that are made all the time: so many machine words, each given as a BigInt. Compiled code then
 * calls the function as it is, in 10 ns. With a narrower number among the arguments the runtime looks at each of them in
 * JavaScript first, 50 to 100 ns more; with more than three it takes a general way, 300 to 400 more. A parameter of 32 bits
 * takes the lower half of its word. A single argument is looked at either way: such calls say what they take.
 */
export const WORDS = {
  2: ["pointer", "pointer"],
  3: ["pointer", "pointer", "pointer"],
  4: ["pointer", "pointer", "pointer", "pointer"],
  5: ["pointer", "pointer", "pointer", "pointer", "pointer"],
  6: ["pointer", "pointer", "pointer", "pointer", "pointer", "pointer"],
} as const;

/** Words are not negative; this is -1 to a parameter of any width. */
export const MINUS_ONE = 0xffff_ffff_ffff_ffffn;

/** Descriptors and most sizes are below it. */
const MOST_KEPT = 1 << 14;

/** So many words are kept at a time. */
const RECENT = 1024;

/**
 * Numbers added to one base as words, such as the addresses of bytes in one piece of memory. The last one of each place in a small
 * table is kept: sizes and addresses of bulk are nearly always the same few.
 */
export class RecentWords {
  readonly #base: bigint;
  readonly #values = Array.from({ length: RECENT }, () => -1);
  readonly #words = Array.from({ length: RECENT }, () => 0n);

  constructor(base = 0n) {
    this.#base = base;
  }

  /** `base + value`, of a number that is whole and not negative. */
  of(value: number): bigint {
    const place = (value ^ (value >>> 10)) & (RECENT - 1);
    return this.#values[place] === value ? itemAt(this.#words, place) : this.#make(place, value);
  }

  #make(place: number, value: number): bigint {
    const word = this.#base + BigInt(value);
    this.#values[place] = value;
    this.#words[place] = word;
    return word;
  }
}

/**
 * Numbers as words. Compiled code makes a BigInt of a number by a call into the runtime and a piece of the heap, 50 to 100 ns, and
 * a connection takes about forty: those that come again and again are kept.
 */
export class NumberWords {
  readonly #kept: (bigint | undefined)[];
  readonly #larger = new RecentWords();

  /** `most`: those below it are kept. */
  constructor(most = MOST_KEPT) {
    this.#kept = Array.from<bigint | undefined>({ length: most });
  }

  /** Of a number that is whole and not negative. */
  of(value: number): bigint {
    if (value >= this.#kept.length) return this.#larger.of(value);
    return this.#kept[value] ?? (this.#kept[value] = BigInt(value));
  }
}
