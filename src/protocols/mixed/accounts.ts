import { hash, timingSafeEqual } from "node:crypto";
import type { Duplex } from "node:stream";
import type { Account, User } from "#core/inbound.ts";
import { abortStream } from "#core/stream.ts";
import { LiveUsers } from "#protocols/live-users.ts";

/** Asks a client for user name and password. */
export interface Authenticator {
  verify(username: string, password: string): boolean;
}

/** The users of a plain listener, by name and password. */
export class AccountBook implements Authenticator {
  /** What the book began with. */
  readonly written: readonly User[];
  readonly #live = new LiveUsers();
  #digests: ReadonlyMap<string, Buffer>;

  /** Of two accounts with one name the later counts, as in the ecosystem. */
  constructor(accounts: readonly Account[]) {
    const byName = new Map(accounts.map((account) => [account.username, userOf(account)]));
    this.written = [...byName.values()];
    this.#digests = digestsOf(this.written);
  }

  /** Takes the same time for a wrong password, whatever its length, and for an unknown user. */
  verify(username: string, password: string): boolean {
    const wanted = this.#digests.get(username);
    const equal = timingSafeEqual(digest(userOf({ username, password }).credential), wanted ?? NO_ACCOUNTS);
    return equal && wanted !== undefined;
  }

  /** For one client: its connection is aborted when a user that it has authenticated as is removed. */
  authenticator(stream: Duplex): Authenticator {
    const proved = new Set<string>();
    return {
      verify: (username, password) => {
        if (!this.verify(username, password)) return false;
        if (proved.has(username)) return true;
        proved.add(username);
        const held = this.#live.add(username, () => abortStream(stream));
        stream.once("close", () => held[Symbol.dispose]());
        return true;
      },
    };
  }

  /** Answers with the names of removed and changed users. Their connections end, unless relay workers have the sockets. */
  replace(users: readonly User[]): ReadonlySet<string> {
    const before = this.#digests;
    const next = digestsOf(users);
    const gone = [...before].filter(([name, digest]) => next.get(name)?.equals(digest) !== true);
    const names = new Set(gone.map(([name]) => name));
    this.#digests = next;
    this.#live.retain((name) => !names.has(name));
    return names;
  }
}

function digestsOf(users: readonly User[]): ReadonlyMap<string, Buffer> {
  return new Map(users.map(({ id, credential }) => [id, digest(credential)]));
}

/** The credential holds the name, too: two people may have the same password. */
function userOf({ username, password }: Account): User {
  return { id: username, credential: JSON.stringify([username, password]), flow: null };
}

function digest(text: string): Buffer {
  return hash("sha256", text, "buffer");
}

const NO_ACCOUNTS = Buffer.alloc(32);
