/** Links to the portal: they name policies, are signed, and live for five minutes. */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";

const LIFETIME_SECONDS = 300;
const LATEST_SECONDS = 600;
const MOST_IDS = 8;

/** The key is made with it: its links end with it. */
export class PortalSigner {
  readonly #key = randomBytes(32);

  /** `?e=…&p=…&s=…`; of more than eight ids the first eight. */
  query(ids: readonly string[], nowSeconds: number): string {
    const policies = ids
      .toSorted((a, b) => (a < b ? -1 : 1))
      .slice(0, MOST_IDS)
      .join(",");
    const expiry = String(nowSeconds + LIFETIME_SECONDS);
    const parameters = { e: expiry, p: policies, s: this.#sign(policies, expiry).toString("base64url") };
    return `?${new URLSearchParams(parameters).toString()}`;
  }

  /** The ids of a good link; null: bad, expired, or none. */
  verify(parameters: URLSearchParams, nowSeconds: number): readonly string[] | null {
    const [policies, expiry, signature] = ["p", "e", "s"].map((name) => parameters.get(name) ?? "");
    if (!policies || !expiry || !signature || !/^\d{1,12}$/.test(expiry)) return null;
    const given = Buffer.from(signature, "base64url");
    const right = this.#sign(policies, expiry);
    if (given.length !== right.length || !timingSafeEqual(given, right)) return null;
    const until = Number(expiry);
    if (until < nowSeconds || until > nowSeconds + LATEST_SECONDS) return null;
    const ids = policies.split(",");
    return ids.length <= MOST_IDS ? ids : null;
  }

  #sign(policies: string, expiry: string): Buffer {
    return createHmac("sha256", this.#key).update(`${policies}\0${expiry}`).digest();
  }
}
