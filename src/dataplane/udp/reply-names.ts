import type { Destination } from "#core/session.ts";
import { oldestKey } from "#lib/at.ts";

const NO_NAMES: Destination = { host: null, ip: null, port: 0 };

/**
 * The source address that the client expects of replies. A client that wrote to an address (a fake one, one that
 * sniffing replaced by a name) accepts replies from that address only; a client that wrote to a name gets the real
 * source.
 */
export class ReplyNames {
  readonly #limit: number;
  readonly #known = new Map<string, Destination>();
  /** By port, for names: the reply comes from an address that only the far side knew. */
  readonly #named = new Map<number, Destination>();
  #lastFrom = NO_NAMES;
  #lastName = NO_NAMES;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /**
   * False when replies could no longer be attributed: two names, the same port, and at least one client that expects an
   * address. Such a destination needs a flow of its own.
   */
  accepts(client: Destination, sentTo: Destination): boolean {
    if (sentTo.ip !== null) return true;
    const holder = this.#named.get(sentTo.port);
    return holder === undefined || (holder.ip === null && client.ip === null) || same(holder, client);
  }

  add(client: Destination, sentTo: Destination): void {
    if (this.#known.size >= this.#limit) this.#known.delete(oldestKey(this.#known));
    this.#known.set(keyOf(sentTo.host, sentTo.ip, sentTo.port), client);
    if (sentTo.ip !== null) this.#known.set(keyOf(null, sentTo.ip, sentTo.port), client);
    else this.#named.set(sentTo.port, client);
    this.#lastFrom = NO_NAMES;
  }

  nameOf(from: Destination): Destination {
    if (same(from, this.#lastFrom)) return this.#lastName;
    this.#lastFrom = from;
    return (this.#lastName = this.#find(from));
  }

  #find({ host, ip, port }: Destination): Destination {
    const known = this.#known;
    const client =
      (ip === null ? undefined : known.get(keyOf(null, ip, port))) ??
      (host === null ? undefined : known.get(keyOf(host, null, port))) ??
      this.#named.get(port);
    if (client !== undefined && client.ip !== null) return { host: null, ip: client.ip, port: client.port };
    return { host: ip === null ? host : null, ip, port };
  }
}

function keyOf(host: string | null, ip: string | null, port: number): string {
  return `${host ?? ip}:${port}`;
}

export function same(a: Destination, b: Destination): boolean {
  return a === b || (a.port === b.port && a.ip === b.ip && a.host === b.host);
}
