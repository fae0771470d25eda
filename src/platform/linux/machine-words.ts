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

/**
 * Numbers as words. Compiled code makes a BigInt of a number by a call into the runtime and a piece of the heap, 50 to 100 ns, and
 * a connection takes about forty: those that come again and again are kept.
 */
export class NumberWords {
  readonly #kept: (bigint | undefined)[];
  /** The last one that was too large: mostly the size of the buffer. */
  #last = 0;
  #lastWord = 0n;

  /** `most`: those below it are kept. */
  constructor(most = MOST_KEPT) {
    this.#kept = Array.from<bigint | undefined>({ length: most });
  }

  /** Of a number that is whole and not negative. */
  of(value: number): bigint {
    if (value >= this.#kept.length) return value === this.#last ? this.#lastWord : this.#remember(value);
    return this.#kept[value] ?? (this.#kept[value] = BigInt(value));
  }

  #remember(value: number): bigint {
    this.#last = value;
    return (this.#lastWord = BigInt(value));
  }
}
