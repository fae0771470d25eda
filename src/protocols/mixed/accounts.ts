import { hash, timingSafeEqual } from "node:crypto";
import type { Account } from "#core/inbound.ts";

/** Who may use an inbound by user name and password. */
export class AccountBook {
  readonly #digests: ReadonlyMap<string, Buffer>;

  /** Of two accounts with one name the later counts, as in the ecosystem. */
  constructor(accounts: readonly Account[]) {
    this.#digests = new Map(accounts.map(({ username, password }) => [username, digest(password)]));
  }

  get isEmpty(): boolean {
    return this.#digests.size === 0;
  }

  /** Takes the same time for a wrong password, whatever its length, and for an unknown user. */
  verify(username: string, password: string): boolean {
    const wanted = this.#digests.get(username);
    const equal = timingSafeEqual(digest(password), wanted ?? NOBODY);
    return equal && wanted !== undefined;
  }
}

function digest(text: string): Buffer {
  return hash("sha256", text, "buffer");
}

const NOBODY = Buffer.alloc(32);
