/**
 * Chains of one node that were found good a short while ago: its server shows the same bytes again and again, and to verify
 * them costs more than the rest of the handshake's signature checks. That the server has the key is proved in each handshake.
 */
import { hash, type KeyObject } from "node:crypto";

/** Of a server, or of some behind one name; one more pushes the oldest out. */
const MOST_KEPT = 8;
const KEPT_MS = 300_000;

interface Judged {
  /** Of the server's own certificate. */
  readonly key: KeyObject;
  readonly sinceMs: number;
  /** No certificate runs out earlier. */
  readonly untilMs: number;
}

export class JudgedChains {
  readonly #judged = new Map<string, Judged>();
  readonly #nowMs: () => number;

  /** `nowMs`: Unix time. */
  constructor(nowMs: () => number = Date.now) {
    this.#nowMs = nowMs;
  }

  /** The key of a chain that is good still; null: it has to be judged. */
  keyOf(chain: readonly Buffer[]): KeyObject | null {
    const known = this.#judged.get(nameOf(chain));
    if (known === undefined) return null;
    const now = this.#nowMs();
    return now >= known.sinceMs && now < known.untilMs ? known.key : null;
  }

  /** `lastsMs`: for so long at most. */
  keep(chain: readonly Buffer[], key: KeyObject, lastsMs: number): void {
    const sinceMs = this.#nowMs();
    this.#judged.set(nameOf(chain), { key, sinceMs, untilMs: sinceMs + Math.min(KEPT_MS, lastsMs) });
    for (const name of this.#judged.keys()) {
      if (this.#judged.size <= MOST_KEPT) break;
      this.#judged.delete(name);
    }
  }
}

/** With the lengths, so that no other chain has the same. */
function nameOf(chain: readonly Buffer[]): string {
  const lengths = chain.map(({ length }) => length).join();
  return `${lengths} ${hash("sha256", Buffer.concat(chain), "base64")}`;
}
