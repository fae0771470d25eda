import { PassingMap } from "#lib/passing-map.ts";
import { SilenceLine } from "./silence-line.ts";

type Timed = { readonly usedAtMs: number };

/** Who holds how many of a table's items, and who holds most: each change costs the same however many there are. */
export class Holders<Item extends Timed> {
  readonly #lines = new Map<string, SilenceLine<Item>>();
  /** By how many they hold. */
  readonly #bySize = new Map<number, PassingMap<SilenceLine<Item>, null>>();
  #mostSize = 0;

  /** What one of them holds; empty where it holds nothing. */
  of(holder: string): SilenceLine<Item> {
    return this.#lines.get(holder) ?? new SilenceLine();
  }

  /** Null: nothing is held. */
  get largest(): SilenceLine<Item> | null {
    return this.#bySize.get(this.#mostSize)?.keys().next().value ?? null;
  }

  /** An item that it does not hold. */
  add(holder: string, item: Item): void {
    const line = this.of(holder);
    const before = line.size;
    line.add(item);
    this.#lines.set(holder, line);
    this.#move(line, before);
    this.#mostSize = Math.max(this.#mostSize, line.size);
  }

  /** Nothing where it does not hold it. */
  delete(holder: string, item: Item): void {
    const line = this.of(holder);
    const before = line.size;
    if (!line.delete(item)) return;
    if (line.size === 0) this.#lines.delete(holder);
    this.#move(line, before);
    if (!this.#bySize.has(this.#mostSize)) this.#mostSize--; // the line itself is one below
  }

  #move(line: SilenceLine<Item>, before: number): void {
    const left = this.#bySize.get(before);
    left?.delete(line);
    if (left?.size === 0) this.#bySize.delete(before);
    if (line.size === 0) return;
    const peers = this.#bySize.get(line.size) ?? new PassingMap();
    peers.set(line, null);
    this.#bySize.set(line.size, peers);
  }
}
