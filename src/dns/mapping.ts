/** Which name a client asked for before it connected to an address (dns.md §9). */
import type { Ip } from "#core/session.ts";
import { isRoutedUnicast } from "#net/address/cidr.ts";
import { ipFromBytes } from "#net/address/ip.ts";
import { oldestKey } from "#lib/at.ts";
import { TextFilter } from "#lib/text-filter.ts";
import { eachAnswer, type Packet } from "./packet.ts";

/**
 * At the bound the entry that was neither written nor read for the longest time goes. There is no other end: clients keep
 * using addresses after their TTL.
 */
const MAX_ENTRIES = 4096;
/**
 * Addresses that are learnt from one answer. Clients do not try more, and without a bound the owner of one name could
 * displace all other names with two answers.
 */
const MAX_ADDRESSES = 64;

export class Mapping {
  readonly #hosts = new Map<Ip, string>();
  /** The addresses, for other threads. */
  readonly addresses = new TextFilter();
  /** Addresses of packets that are answered again and again from the cache. */
  readonly #known = new WeakMap<Packet, readonly Ip[]>();

  /** Remembers the addresses of an answer, those of private networks too. The last name that resolved to an address wins. */
  remember(host: string, packet: Packet, type: number): void {
    let addresses = this.#known.get(packet);
    if (addresses === undefined) {
      addresses = addressesOf(packet, type);
      this.#known.set(packet, addresses);
    }
    for (const ip of addresses) this.insert(ip, host);
  }

  insert(ip: Ip, host: string): void {
    if (!this.#hosts.delete(ip)) this.addresses.add(ip);
    this.#hosts.set(ip, host);
    if (this.#hosts.size > MAX_ENTRIES) this.#forget(oldestKey(this.#hosts));
  }

  #forget(ip: Ip): void {
    this.#hosts.delete(ip);
    this.addresses.remove(ip);
  }

  hostOf(ip: Ip): string | null {
    const host = this.#hosts.get(ip);
    if (host === undefined) return null;
    this.insert(ip, host);
    return host;
  }

  exportState(): readonly (readonly [Ip, string])[] {
    return [...this.#hosts];
  }
}

function addressesOf(packet: Packet, type: number): readonly Ip[] {
  const addresses: Ip[] = [];
  eachAnswer(packet, type, (address) => {
    const ip = ipFromBytes(address);
    if (addresses.length < MAX_ADDRESSES && isRoutedUnicast(ip)) addresses.push(ip);
  });
  return addresses;
}
