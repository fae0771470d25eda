import { suggestion } from "#lib/nearest-word.ts";

/** A message about the file for the user. `line` and `column` count from 1. */
export interface Diagnostic {
  readonly severity: "error" | "warning";
  readonly line: number;
  readonly column: number;
  /** `proxies[3].port`; empty for the document itself. */
  readonly path: string;
  /** What is wrong and what would be right. */
  readonly message: string;
  /** Set where the same is likely to be said of many items: logs say it once, with a count. */
  readonly about?: About;
}

/** One item of many of which the same is said. */
export interface About {
  readonly name: string;
  /** The sentence without the item: `type tuic is not in this build; the node stays and cannot be dialled`. */
  readonly what: string;
}

export type Path = readonly (string | number)[];

/** Counts from 1. */
export interface SourcePosition {
  readonly line: number;
  readonly column: number;
}

/**
 * Finds the position of a path in the text: of its key, or its value. A path that is not there is found at its parent.
 */
export type Locate = (path: Path, at: "key" | "value") => SourcePosition;

/** No key of ours lies deeper; of a file that nests on and on the beginning is enough. */
const LONGEST_PATH = 16;
/** Characters of a key and of a message: aliases can put one long text into thousands of them. */
const LONGEST_KEY = 100;
const LONGEST_MESSAGE = 1000;

function cut(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length)}...` : text;
}

/** `proxies[3].ws-opts.path`; keys that need it are quoted: `hosts["*.lan"]`. */
export function pathText(path: Path): string {
  const text = path
    .slice(0, LONGEST_PATH)
    .map((part, at) => {
      if (typeof part === "number") return `[${part}]`;
      const key = cut(part, LONGEST_KEY);
      if (!/^[\w-]+$/.test(key)) return `[${JSON.stringify(key)}]`;
      return at === 0 ? key : `.${key}`;
    })
    .join("");
  return path.length > LONGEST_PATH ? `${text}...` : text;
}

/**
 * Beyond this a user would not read on, and a hostile file must not fill the memory: one more line says how many were
 * left out.
 */
const MOST = 2000;
const MOST_COMPARISONS = 1_000_000;

interface TrialError {
  readonly path: Path;
  readonly message: string;
}

/** Collects everything that is to be said about a file. */
export class Report {
  readonly #locate: Locate;
  readonly #errors = new Diagnostics("error");
  readonly #warnings = new Diagnostics("warning");
  readonly #suggested = new WeakMap<object, Map<string, string>>();
  #comparisons = 0;
  #trial: TrialError[] | null = null;

  constructor(locate: Locate) {
    this.#locate = locate;
  }

  /** `; did you mean "x"?` or nothing. Remembers, and gives up guessing in a file that wants too much of it. */
  suggest(wanted: string, known: ReadonlySet<string>): string {
    const asked = this.#suggested.get(known) ?? new Map<string, string>();
    this.#suggested.set(known, asked);
    let text = asked.get(wanted);
    if (text === undefined) {
      text = this.#comparisons > MOST_COMPARISONS ? "" : suggestion(wanted, known);
      this.#comparisons += known.size;
      asked.set(wanted, text);
    }
    return text;
  }

  positionOf(path: Path): SourcePosition {
    return this.#locate(path, "value");
  }

  error(path: Path, message: string, at: "key" | "value" = "value"): void {
    if (this.#trial !== null) this.#trial.push({ path, message });
    else this.#errors.add(() => this.#locate(path, at), path, message);
  }

  warning(path: Path, message: string, at: "key" | "value" = "value", about?: About): void {
    this.#warnings.add(() => this.#locate(path, at), path, message, about);
  }

  /** Runs `work` and answers the errors that it reports; they cost whatever `work` reads and are not kept. */
  trial(work: () => void): readonly TrialError[] {
    const errors: TrialError[] = [];
    const before = this.#trial;
    this.#trial = errors;
    try {
      work();
    } finally {
      this.#trial = before;
    }
    return errors;
  }

  /** Something whose place is known already. */
  errorAt(position: SourcePosition, path: Path, message: string): void {
    this.#errors.add(() => position, path, message);
  }

  warningAt(position: SourcePosition, path: Path, message: string): void {
    this.#warnings.add(() => position, path, message);
  }

  get failed(): boolean {
    return this.#errors.count > 0;
  }

  get errors(): readonly Diagnostic[] {
    return this.#errors.sorted();
  }

  get warnings(): readonly Diagnostic[] {
    return this.#warnings.sorted();
  }
}

/** All of one severity. */
class Diagnostics {
  readonly #severity: Diagnostic["severity"];
  readonly #kept: Diagnostic[] = [];
  count = 0;

  constructor(severity: Diagnostic["severity"]) {
    this.#severity = severity;
  }

  add(position: () => SourcePosition, path: Path, message: string, about?: About): void {
    if (++this.count > MOST) return;
    const text = cut(message, LONGEST_MESSAGE);
    const said = { severity: this.#severity, ...position(), path: pathText(path), message: text };
    this.#kept.push(about === undefined ? said : { ...said, about });
  }

  /** By place; at the end how many more there are. */
  sorted(): readonly Diagnostic[] {
    const sorted = this.#kept.toSorted((left, right) => left.line - right.line || left.column - right.column);
    const last = sorted.at(-1);
    if (last === undefined || this.count <= MOST) return sorted;
    return [...sorted, { ...last, path: "", message: `and ${this.count - MOST} more ${this.#severity}s` }];
  }
}

/** `config.yaml:12:5 proxies[3].port: proxy 3: 'port' expected an integer …` */
export function formatDiagnostic(fileName: string, { line, column, path, message }: Diagnostic): string {
  return `${fileName}:${line}:${column} ${path === "" ? "(document)" : path}: ${message}`;
}
