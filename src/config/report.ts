import { suggestion } from "#core/nearest.ts";
import type { Diagnostic } from "./config.ts";

export type Path = readonly (string | number)[];

/** Counts from 1. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

/** Finds where a path stands in the text: its key, or its value. A path that is not there is found at its parent. */
export type Locate = (path: Path, at: "key" | "value") => Place;

/** `proxies[3].ws-opts.path`; keys that need it are quoted: `hosts["*.lan"]`. */
function pathText(path: Path): string {
  return path
    .map((part, at) => {
      if (typeof part === "number") return `[${part}]`;
      if (!/^[\w-]+$/.test(part)) return `[${JSON.stringify(part)}]`;
      return at === 0 ? part : `.${part}`;
    })
    .join("");
}

/** Beyond this nobody reads on, and a hostile file must not fill the memory: one more line says how many were left out. */
const MOST = 2000;
const MOST_COMPARISONS = 1_000_000;

/** Collects everything that is to be said about a file. */
export class Report {
  readonly #locate: Locate;
  readonly #errors: Diagnostic[] = [];
  readonly #warnings: Diagnostic[] = [];
  #leftOut = 0;
  readonly #suggested = new WeakMap<object, Map<string, string>>();
  #comparisons = 0;

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

  placeOf(path: Path): Place {
    return this.#locate(path, "value");
  }

  error(path: Path, message: string, at: "key" | "value" = "value"): void {
    this.#add(this.#errors, "error", path, message, at);
  }

  warning(path: Path, message: string, at: "key" | "value" = "value"): void {
    this.#add(this.#warnings, "warning", path, message, at);
  }

  /** Something whose place is known already. */
  errorAt(place: Place, path: Path, message: string): void {
    if (this.#errors.length >= MOST) this.#leftOut++;
    else this.#errors.push({ severity: "error", ...place, path: pathText(path), message });
  }

  get failed(): boolean {
    return this.#errors.length > 0;
  }

  get errors(): readonly Diagnostic[] {
    const sorted = this.#errors.toSorted(byPlace);
    const last = sorted.at(-1);
    if (last === undefined || this.#leftOut === 0) return sorted;
    return [...sorted, { ...last, path: "", message: `and ${this.#leftOut} more errors` }];
  }

  get warnings(): readonly Diagnostic[] {
    return this.#warnings.toSorted(byPlace);
  }

  #add(
    to: Diagnostic[],
    severity: "error" | "warning",
    path: Path,
    message: string,
    at: "key" | "value",
  ): void {
    if (to.length >= MOST) {
      if (severity === "error") this.#leftOut++;
      return;
    }
    to.push({ severity, ...this.#locate(path, at), path: pathText(path), message });
  }
}

function byPlace(left: Diagnostic, right: Diagnostic): number {
  return left.line - right.line || left.column - right.column;
}

/** `config.yaml:12:5 proxies[3].port: proxy 3: 'port' expected an integer …` */
export function formatDiagnostic(fileName: string, { line, column, path, message }: Diagnostic): string {
  return `${fileName}:${line}:${column} ${path === "" ? "(document)" : path}: ${message}`;
}
