/** The neighbours by address and by hardware address, as the kernel says it; opened when first asked. */
import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { Neighbours } from "#core/neighbours.ts";
import type { Ip } from "#core/session.ts";
import { ipFromBytes } from "#net/address/ip.ts";
import { watchNeighbours, type Neighbour, type NeighbourWatch } from "#platform/neighbours.ts";

/**
 * The kernel keeps 1,024 of a family by itself (gc_thresh3), more where it was told to. Further ones are not known here:
 * their hosts are matched by their addresses alone.
 */
const MOST_ADDRESSES = 65_536;
const SETTLE_MS = 100;

interface OnLink {
  readonly link: number;
  readonly mac: string;
}

type Open = typeof watchNeighbours;

export class NeighbourTable implements Neighbours, Disposable {
  readonly #log: Log;
  readonly #open: Open;
  readonly #byAddress = new Map<Ip, readonly OnLink[]>();
  readonly #byMac = new Map<string, Set<Ip>>();
  readonly #watchers = new Set<(changed: ReadonlySet<Ip>) => void>();
  #changed = new Set<Ip>();
  #timer: NodeJS.Timeout | null = null;
  /** Undefined: not asked yet. */
  #watch: NeighbourWatch | null | undefined;
  #isFull = false;

  constructor(log: Log, open: Open = watchNeighbours) {
    this.#log = log;
    this.#open = open;
  }

  macOf(ip: Ip): string | null {
    this.#look();
    const [first, ...others] = this.#byAddress.get(ip) ?? [];
    if (first === undefined || others.some(({ mac }) => mac !== first.mac)) return null;
    return first.mac;
  }

  addressesOf(mac: string): readonly Ip[] {
    this.#look();
    return [...(this.#byMac.get(mac) ?? [])];
  }

  watch(on: (changed: ReadonlySet<Ip>) => void): Disposable {
    this.#look();
    this.#watchers.add(on);
    return { [Symbol.dispose]: () => void this.#watchers.delete(on) };
  }

  get size(): number {
    return this.#byAddress.size;
  }

  [Symbol.dispose](): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#watch?.[Symbol.dispose]();
    this.#watch = null;
  }

  #look(): void {
    if (this.#watch !== undefined) return this.#watch?.look();
    this.#watch = null;
    try {
      const reset = (): void => {
        this.#byAddress.clear();
        this.#byMac.clear();
        this.#isFull = false;
      };
      this.#watch = this.#open({ reset, on: (neighbour) => this.#take(neighbour), log: this.#log });
      if (this.#watch === null)
        this.#log.warning(
          "neighbours: this system does not tell hardware addresses; devices are known by address alone",
        );
    } catch (error) {
      this.#log.warning(`neighbours: ${messageOf(error)}; devices are known by address alone`);
    }
  }

  #take({ address, link, mac }: Neighbour): void {
    const ip = ipFromBytes(address);
    const before = this.#byAddress.get(ip) ?? [];
    const old = before.find((each) => each.link === link) ?? null;
    if ((old?.mac ?? null) === mac) return;
    const others = before.filter((each) => each.link !== link);
    const now = mac === null ? others : [...others, { link, mac }];
    if (before.length === 0 && this.#byAddress.size >= MOST_ADDRESSES) return this.#full();
    if (now.length === 0) this.#byAddress.delete(ip);
    else this.#byAddress.set(ip, now);
    if (old !== null && !now.some((each) => each.mac === old.mac)) this.#forget(old.mac, ip);
    if (mac === null) return; // what is open stays whose it was
    const addresses = this.#byMac.get(mac);
    if (addresses === undefined) this.#byMac.set(mac, new Set([ip]));
    else addresses.add(ip);
    this.#tell(ip);
  }

  #forget(mac: string, ip: Ip): void {
    const addresses = this.#byMac.get(mac);
    addresses?.delete(ip);
    if (addresses?.size === 0) this.#byMac.delete(mac);
  }

  #full(): void {
    if (!this.#isFull)
      this.#log.warning(
        `neighbours: more than ${MOST_ADDRESSES}; further ones are not known by hardware address`,
      );
    this.#isFull = true;
  }

  #tell(ip: Ip): void {
    if (this.#watchers.size === 0) return;
    this.#changed.add(ip);
    this.#timer ??= setTimeout(() => {
      const changed = this.#changed;
      this.#changed = new Set();
      this.#timer = null;
      for (const on of this.#watchers) on(changed);
    }, SETTLE_MS).unref();
  }
}
