/** Values by domain pattern: hosts, DNS policies, fake-IP filters, rule sets. */
import { itemAt } from "./at.ts";
import type { DomainPattern } from "./domain-pattern.ts";
import { APEX, BELOW, DomainTable, EXACT } from "./domain-table.ts";
import { atOnce, type Steps } from "./steps.ts";

/**
 * The most specific pattern answers: exact before `*` before `.` and `+`; among suffixes the longest; among patterns
 * with `*` the one that is literal nearer the end. Of equal patterns the first counts.
 */
export class DomainTrie<T> {
  readonly #table: DomainTable;
  readonly #stars: StarTree | null;
  /** Values of plain patterns, then of starred ones. */
  readonly #values: readonly T[];
  readonly #plainCount: number;

  private constructor(table: DomainTable, stars: StarTree | null, values: readonly T[], plainCount: number) {
    this.#table = table;
    this.#stars = stars;
    this.#values = values;
    this.#plainCount = plainCount;
  }

  static of<T>(entries: Iterable<readonly [DomainPattern, T]>): DomainTrie<T> {
    return atOnce(DomainTrie.build(entries));
  }

  /** The same in steps. */
  static *build<T>(entries: Iterable<readonly [DomainPattern, T]>): Steps<DomainTrie<T>> {
    const names: string[] = [];
    const covers: number[] = [];
    const values: T[] = [];
    const starredValues: T[] = [];
    let stars: StarTree | null = null;
    for (const [pattern, value] of entries) {
      if (pattern.starred) {
        stars ??= new StarTree();
        stars.insert(pattern, starredValues.push(value) - 1);
      } else {
        names.push(pattern.name);
        covers.push(pattern.covers);
        values.push(value);
      }
      yield;
    }
    const table = yield* DomainTable.build(names, Uint8Array.from(covers));
    for (const value of starredValues) values.push(value);
    return new DomainTrie(table, stars, values, names.length);
  }

  get size(): number {
    return this.#values.length;
  }

  /** `host` is lower-case ASCII without a last dot. */
  get(host: string): T | undefined {
    const at = this.#find(host);
    return at < 0 ? undefined : this.#values[at];
  }

  has(host: string): boolean {
    return this.#find(host) >= 0;
  }

  #find(host: string): number {
    const plain = this.#table.find(host);
    if (this.#stars === null || (plain >= 0 && this.#table.isExact(plain))) return plain;
    const star = this.#stars.find(host, plain < 0);
    return star < 0 ? plain : this.#plainCount + star;
  }
}

interface StarNode {
  readonly children: Map<string, StarNode>;
  /** The item that covers exactly the names that end here, ranked as EXACT and as APEX, and those below; -1: none. */
  exact: number;
  apex: number;
  below: number;
}

/** Patterns with `*` labels, from the last label to the first. Few in practice, so plain maps do. */
class StarTree {
  readonly #root: StarNode = { children: new Map(), exact: -1, apex: -1, below: -1 };

  /** Items are inserted in ascending order: of equal patterns the first counts. */
  insert({ name, covers }: DomainPattern, item: number): void {
    let node = this.#root;
    for (const label of name.split(".").reverse()) {
      let child = node.children.get(label);
      if (child === undefined) {
        child = { children: new Map(), exact: -1, apex: -1, below: -1 };
        node.children.set(label, child);
      }
      node = child;
    }
    if ((covers & EXACT) !== 0 && node.exact < 0) node.exact = item;
    if ((covers & APEX) !== 0 && node.apex < 0) node.apex = item;
    if ((covers & BELOW) !== 0 && node.below < 0) node.below = item;
  }

  /** A pattern of exactly these labels; with `orBelow`, failing that, one that ends in `+`/`.` and covers them. */
  find(host: string, orBelow: boolean): number {
    const labels = host.split(".");
    const exact = walk(this.#root, labels, labels.length, false);
    return exact >= 0 || !orBelow ? exact : walk(this.#root, labels, labels.length, true);
  }
}

/** Depth first, literal before star; visits each node once at most, so hostile hosts cost no more than the tree. */
function walk(node: StarNode, labels: readonly string[], left: number, below: boolean): number {
  if (left === 0) return below ? node.apex : node.exact;
  const literal = itemAt(labels, left - 1);
  for (const label of literal === "*" ? ["*"] : [literal, "*"]) {
    const child = node.children.get(label);
    const found = child === undefined ? -1 : walk(child, labels, left - 1, below);
    if (found >= 0) return found;
  }
  return below ? node.below : -1;
}
