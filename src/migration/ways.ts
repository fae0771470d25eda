/** Where another program's outbounds lead: nodes, groups, or what is always there. */
import type { LinkNode } from "#core/share-link.ts";
import { shown, type LeftOut } from "./imported.ts";
import type { Json } from "./json.ts";

/** What would leave by an outbound that is not taken is refused, so that it leaves by no other way than it should. */
export const REFUSED = "REJECT";

const BUILT_IN = ["DIRECT", "REJECT", "REJECT-DROP", "PASS", "COMPATIBLE", "GLOBAL"];

export class Ways {
  readonly #report: LeftOut;
  readonly #targets = new Map<string, string>();
  readonly #taken = new Set(BUILT_IN);
  readonly #proxies: Json[] = [];
  readonly #groups: Json[] = [];

  constructor(report: LeftOut) {
    this.#report = report;
  }

  /** Rules that name the tag lead there. */
  lead(tag: string, target: string): void {
    if (!this.#targets.has(tag)) this.#targets.set(tag, target);
  }

  /** Undefined: there is no such outbound. */
  target(tag: string): string | undefined {
    return this.#targets.get(tag);
  }

  /** A name that rules can hold and no other has; rules that name the tag lead to it. */
  claim(tag: string, fallback: string, where: string): string {
    const plain = tag.replaceAll(/[\p{Cc}\p{Zl}\p{Zp},()]/gu, "_").trim() || fallback;
    let name = plain;
    for (let number = 2; this.#taken.has(name); number++) name = `${plain}-${number}`;
    this.#taken.add(name);
    if (tag !== "" && name !== tag) this.#report.add(where, `it is called ${shown(name)}`);
    this.lead(tag, name);
    return name;
  }

  add(node: LinkNode): void {
    this.#proxies.push(node);
  }

  addGroup(group: Json): void {
    this.#groups.push(group);
  }

  /** Names of what the tags lead to, each once; those that are refused are left out. */
  members(tags: readonly string[]): readonly string[] {
    const names = tags.map((tag) => this.#targets.get(tag)).filter((name) => name !== undefined);
    return [...new Set(names)].filter((name) => name !== REFUSED);
  }

  /** Keys of the file; empty where there is nothing. */
  keys(): Json {
    return {
      ...(this.#proxies.length === 0 ? {} : { proxies: this.#proxies }),
      ...(this.#groups.length === 0 ? {} : { "proxy-groups": this.#groups }),
    };
  }
}
