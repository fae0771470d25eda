/**
 * Expressions that only a backtracking engine can run, such as look-ahead: admitted where the text of the expression
 * alone proves that no name can keep the engine long. Names are short; what counts is in how many ways one can be tried.
 */

/** Names have at most 253 characters; longer texts match nothing. */
const LONGEST_TEXT = 256;
/** Steps for the worst text, some five milliseconds. */
const MOST_STEPS = 1_000_000;

interface Cost {
  /** In how many ways the part can match one text. */
  readonly ways: number;
  /** Steps until all of them have been tried. */
  readonly steps: number;
}

/** Null where the bound cannot be proved. `source` is a right expression without inline flags. */
export function compileBounded(source: string): { test(text: string): boolean } | null {
  const cost = new Analysis(source).all();
  if (cost === null || cost.steps * (source.startsWith("^") ? 1 : LONGEST_TEXT) > MOST_STEPS) return null;
  const pattern = new RegExp(source);
  return { test: (text) => text.length <= LONGEST_TEXT && pattern.test(text) };
}

const LOOK_AROUND = /^\(\?<?[=!]/;
const GROUP_HEAD = /^\((?:\?(?::|<[a-z_]\w*>))?/i;
const CLASS = /^\[(?:\\.|[^\]\\])*\]/s;
const QUANTIFIER = /^(?:[*+?]|\{(\d+)(,)?(\d*)\})\??/;
const BACK_REFERENCE = /^\\(?:[1-9]|k<)/;

/** A descent over the text of one expression; null: it holds what no bound is known for. */
class Analysis {
  readonly #source: string;
  #at = 0;

  constructor(source: string) {
    this.#source = source;
  }

  all(): Cost | null {
    return this.#alternatives();
  }

  #rest(): string {
    return this.#source.slice(this.#at);
  }

  /** Branches add up. Ends before a closing bracket or at the end. */
  #alternatives(): Cost | null {
    let ways = 0;
    let steps = 0;
    for (;;) {
      const branch = this.#sequence();
      if (branch === null) return null;
      ways += branch.ways;
      steps += branch.steps;
      if (this.#source[this.#at] !== "|") return { ways, steps };
      this.#at++;
    }
  }

  /** Parts multiply. */
  #sequence(): Cost | null {
    let ways = 1;
    let steps = 1;
    while (this.#at < this.#source.length && !/[|)]/.test(this.#source.charAt(this.#at))) {
      const isLook = LOOK_AROUND.test(this.#rest());
      const part = this.#part();
      if (part === null) return null;
      steps = Math.max(steps, ways * part.steps);
      if (!isLook) ways *= part.ways; // a look-around is left as soon as it has an answer
    }
    return { ways, steps: Math.max(steps, ways) };
  }

  #part(): Cost | null {
    const atom = this.#atom();
    const [text = "", least, comma, most] = QUANTIFIER.exec(this.#rest()) ?? [];
    if (atom === null || text === "") return atom;
    this.#at += text.length;
    if (text.startsWith("?")) return { ways: atom.ways + 1, steps: atom.steps + 1 };
    if (atom.ways > 1) return null; // a repeat of what matches in several ways is exponential
    const open = least === undefined || (comma !== undefined && most === "");
    const choices = open
      ? LONGEST_TEXT
      : most === undefined || most === ""
        ? 1
        : Number(most) - Number(least) + 1;
    const rounds = open ? LONGEST_TEXT : Math.min(LONGEST_TEXT, Number(most || least));
    return { ways: Math.max(1, choices), steps: Math.max(choices, rounds * atom.steps) };
  }

  #atom(): Cost | null {
    const rest = this.#rest();
    if (BACK_REFERENCE.test(rest)) return null;
    if (rest.startsWith("(")) {
      this.#at += (LOOK_AROUND.exec(rest) ?? GROUP_HEAD.exec(rest))?.[0].length ?? 1;
      const inner = this.#alternatives();
      this.#at++; // the closing bracket
      return inner;
    }
    const length = rest.startsWith("\\") ? 2 : (CLASS.exec(rest)?.[0].length ?? 1);
    this.#at += length;
    return { ways: 1, steps: 1 };
  }
}
