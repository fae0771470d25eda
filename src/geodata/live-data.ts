import { UNKNOWN, type Condition } from "#core/condition.ts";
import type { Facts, FactName, ReadRecords, RuleData } from "#core/rule.ts";

/** Contents that can be replaced while rules hold on to it. Before the first load it matches nothing. */
export class LiveData<From> implements RuleData {
  readonly reads: readonly FactName[];
  readonly records: ReadRecords | undefined;
  readonly loads: (from: From) => RuleData | null;
  readonly #why: () => string;
  #contents: RuleData | null = null;

  /** `why` says, while nothing is loaded, what is missing. */
  constructor(reads: readonly FactName[], loads: (from: From) => RuleData | null, why: () => string) {
    this.#why = why;
    this.reads = reads;
    this.loads = loads;
    this.records = reads.includes("ip")
      ? (facts, known) => this.#contents?.records?.(facts, known) ?? known
      : undefined;
  }

  get size(): number {
    return this.#contents?.size ?? 0;
  }

  get unavailable(): string | null {
    return this.#contents === null ? this.#why() : null;
  }

  get condition(): Condition {
    return this.#contents === null ? { is: "never" } : (this.#contents.condition ?? UNKNOWN);
  }

  match(facts: Facts): boolean | undefined {
    return this.#contents === null ? false : this.#contents.match(facts);
  }

  /** Throws, with the old contents in place, where the new ones cannot be read. */
  load(from: From): void {
    this.#contents = this.loads(from) ?? this.#contents;
  }
}
