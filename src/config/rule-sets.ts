import type { Report } from "./report.ts";

export type Behavior = "domain" | "ipcidr" | "classical";

/** The rule-providers of the file, for everything that names one. */
export class RuleSetNames {
  readonly #behaviors: ReadonlyMap<string, Behavior | null>;
  readonly #names: ReadonlySet<string>;
  readonly #report: Report;

  /** Null: the provider is there but its own definition is broken, so nothing more is said about it. */
  constructor(behaviors: ReadonlyMap<string, Behavior | null>, report: Report) {
    this.#behaviors = behaviors;
    this.#names = new Set(behaviors.keys());
    this.#report = report;
  }

  has(name: string): boolean {
    return this.#behaviors.has(name);
  }

  /** What is wrong with naming this set where one of these behaviours is wanted; null for nothing. */
  fault(name: string, wanted: readonly Behavior[]): string | null {
    const behavior = this.#behaviors.get(name);
    if (behavior === undefined) return this.absence(name);
    if (behavior === null || wanted.includes(behavior)) return null;
    return `rule-set ${JSON.stringify(name)} has behavior ${behavior}; here it must be ${wanted.join(" or ")}`;
  }

  /** Says that no rule provider has this name; null: one has. */
  absence(name: string): string | null {
    return this.#behaviors.has(name)
      ? null
      : `rule-set ${JSON.stringify(name)} not found in rule-providers${this.#report.suggest(name, this.#names)}`;
  }
}
