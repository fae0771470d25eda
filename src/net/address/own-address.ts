import { networkInterfaces } from "node:os";
import type { Destination, Endpoint, Ip } from "#core/session.ts";
import { ANY_V4, ANY_V6, isLoopback, parseIp } from "./ip.ts";

/**
 * Would a dial to `destination` come back to the listener that captured it? Asked of connections whose destination
 * the network says, so that one made straight to the listener's own port does not go round for ever.
 */
export function loopsBack({ ip, port }: Destination, listener: Endpoint): boolean {
  return port === listener.port && ip !== null && isOwnAddress(ip);
}

/** Is it this machine's? Takes about 0.1 ms where it is no loopback address. */
function isOwnAddress(ip: Ip): boolean {
  return isAlwaysOwn(ip) || ownAddresses().includes(ip);
}

function isAlwaysOwn(ip: Ip): boolean {
  return isLoopback(ip) || ip === ANY_V6 || ip === ANY_V4;
}

const FRESH_MS = 1_000;
const MOST_SEEN = 4_096;

/** For a query at every flow: its answer is a second old at most. */
export class RecentOwnAddresses {
  #all: ReadonlySet<Ip> = new Set();
  #asOfMs = -Infinity;

  has(ip: Ip): boolean {
    if (isAlwaysOwn(ip)) return true;
    const nowMs = performance.now();
    if (nowMs - this.#asOfMs >= FRESH_MS) {
      this.#asOfMs = nowMs;
      this.#all = new Set(ownAddresses());
    }
    return this.#all.has(ip);
  }
}

/**
 * For a query at every connection, where an address of ours must not be taken for another's: what has not been seen within
 * a second is looked for at once.
 */
export class ForeignAddresses {
  readonly #isOwn = new Map<Ip, boolean>();
  readonly #mayBeOwn: (ip: Ip) => boolean;
  #sinceMs = -Infinity;

  /** `mayBeOwn` asks the system, which takes some time. */
  constructor(mayBeOwn: (ip: Ip) => boolean) {
    this.#mayBeOwn = mayBeOwn;
  }

  /** Is it certainly none of this machine? */
  has(ip: Ip): boolean {
    if (isAlwaysOwn(ip)) return false;
    const nowMs = performance.now();
    if (nowMs - this.#sinceMs >= FRESH_MS || this.#isOwn.size >= MOST_SEEN) {
      this.#isOwn.clear();
      this.#sinceMs = nowMs;
    }
    const known = this.#isOwn.get(ip);
    if (known !== undefined) return !known;
    const isOwn = this.#mayBeOwn(ip);
    this.#isOwn.set(ip, isOwn);
    return !isOwn;
  }
}

/** All addresses of this machine, now. */
export function ownAddresses(): readonly Ip[] {
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return all.flatMap(({ address }) => parseIp(address) ?? []);
}
