/** The connections that have ended last, so that a page that is opened later shows what became of them. */
import type { EndedConnection, SeenDecision } from "#core/live.ts";
import type { Decision } from "#core/router.ts";
import type { Facts } from "#core/rule.ts";

/** Each costs one object at its end, about a kilobyte with its texts; beyond the bound the oldest goes. */
export const MOST_ENDED = 1_000;

export class EndedRing implements Iterable<EndedConnection> {
  readonly #rows: EndedConnection[] = [];
  /** Where the next one is written; before the ring is full, its end. */
  #next = 0;

  push(row: EndedConnection): void {
    this.#rows[this.#next] = row;
    this.#next = (this.#next + 1) % MOST_ENDED;
  }

  /** The newest first. */
  *[Symbol.iterator](): Generator<EndedConnection, undefined> {
    const size = this.#rows.length;
    for (let back = 1; back <= size; back++) {
      const row = this.#rows[(this.#next - back + size) % size];
      if (row !== undefined) yield row;
    }
  }
}

/** What is shown of a decision. Of nodes and rules only texts are kept: they would keep the configuration that they are of. */
export function seenOf(decision: Decision): SeenDecision {
  const { chain, destination, dnsMode, sniffedHost, records, facts } = decision;
  const rule = decision.entered ?? decision.rule;
  const seen: { -readonly [key in keyof SeenDecision]: SeenDecision[key] } = {
    chain,
    destination,
    dnsMode,
    facts: factsShown(facts),
    rule: rule === null ? null : { apiType: rule.apiType, payload: rule.payload },
  };
  if (sniffedHost !== undefined) seen.sniffedHost = sniffedHost;
  if (records !== undefined) seen.records = records;
  return seen;
}

function factsShown({ ip, process }: Facts): SeenDecision["facts"] {
  if (process === undefined) return ip === undefined ? {} : { ip };
  return ip === undefined ? { process } : { ip, process };
}
