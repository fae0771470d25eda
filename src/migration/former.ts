/** The table by which subscriptions go on under the addresses that they had with the other program. */
import type { FormerSubscriptions } from "./imported.ts";
import type { Json } from "./json.ts";

export class FormerTable {
  /** Tokens of each name there; several where it was a user of several inbounds. */
  readonly #tokens = new Map<string, string[]>();

  add(subscription: string, token: string): void {
    if (subscription === "") return;
    const known = this.#tokens.get(subscription);
    if (known === undefined) this.#tokens.set(subscription, [token]);
    else known.push(token);
  }

  /** What `svc.former-subscriptions` names; null: there is none. */
  table(former: FormerSubscriptions | undefined): Json | null {
    if (former === undefined || this.#tokens.size === 0) return null;
    const { paths, signed } = former;
    const users = [...this.#tokens].map(([name, tokens]) => {
      const sinceMs = signed?.since.get(name);
      return [name, { tokens, ...(sinceMs === undefined ? {} : { since: sinceMs }) }] as const;
    });
    return {
      version: 1,
      paths,
      ...(signed === undefined ? {} : { secret: signed.secret }),
      users: Object.fromEntries(users),
    };
  }
}
