/** Whose key opens a datagram of the AEAD ciphers (SIP004): nothing in it says so, and it costs 9 µs to try a key. */
import { type Endpoint, endpointText } from "#core/session.ts";
import { oldestKey } from "#lib/at.ts";
import { PerSecond } from "#lib/per-second.ts";
import type { ServerKeys, UserKey } from "./server-keys.ts";

/** Keys that are tried in a second, and at once, for sources that no user is known to have: a fifth of a core. */
const MOST_TRIALS = 20_000;
/** Of each source its address counts, and its address with the port. The one that was silent longest goes first. */
const MOST_SOURCES = 16_384;

export class PacketUsers {
  /** By source, in the order of their last use; of a server without users an empty name. */
  readonly #users = new Map<string, string>();
  readonly #trials = new PerSecond(MOST_TRIALS, MOST_TRIALS);
  readonly #now: () => number;

  /** `now`: monotonic milliseconds. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** The user's key comes first who last used the source. Null: no key opens it, or too many were tried of late. */
  find<Opened>(keys: ServerKeys, source: Endpoint, open: (entry: UserKey) => Opened | null): Opened | null {
    const places = [endpointText(source), source.ip];
    const known = new Set(places.map((place) => this.#knownAt(place, keys)));
    for (const entry of known) {
      const opened = entry === undefined ? null : open(entry);
      if (entry !== undefined && opened !== null) return this.#remember(places, entry, opened);
    }
    if (this.#trials.isFull(this.#now())) return null;
    for (const entry of keys.candidates) {
      if (known.has(entry)) continue;
      this.#trials.add();
      const opened = open(entry);
      if (opened !== null) return this.#remember(places, entry, opened);
    }
    return null;
  }

  #knownAt(place: string, { candidates, byName }: ServerKeys): UserKey | undefined {
    const user = this.#users.get(place);
    if (user === undefined) return undefined;
    return user === "" ? candidates[0] : byName.get(user);
  }

  #remember<Opened>(places: readonly string[], { user }: UserKey, opened: Opened): Opened {
    for (const place of places) {
      this.#users.delete(place);
      this.#users.set(place, user ?? "");
    }
    while (this.#users.size > MOST_SOURCES) this.#users.delete(oldestKey(this.#users));
    return opened;
  }
}
