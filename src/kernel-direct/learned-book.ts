/**
 * What one consumer has learnt: which addresses are certainly DIRECT, by which names (kernel-direct.md §2.1, §2.6). An
 * address is PROXY while one of its names is not direct, so a name that shares it can never make it leak.
 */
import type { Ip } from "#core/session.ts";
import { ExpiryWheel, type Expiring } from "./expiry-wheel.ts";

export type Verdict = "direct" | "proxy";

export interface BookCounts {
  readonly maxEntries: number;
  readonly maxRecords: number;
  readonly directAddresses: number;
  readonly proxyAddresses: number;
  /** (address, name) pairs. */
  readonly records: number;
}

interface Entry {
  readonly ip: Ip;
  readonly hosts: Map<string, Learned>;
  /** Names that are not direct. */
  proxies: number;
}

interface Learned extends Expiring {
  readonly entry: Entry;
  readonly host: string;
  direct: boolean;
}

export interface Observed {
  readonly ip: Ip;
  readonly host: string;
  readonly direct: boolean;
  readonly expiresAtMs: number;
}

const RECORDS_PER_ENTRY = 4;

export class LearnedBook {
  /** Addresses in the order in which they were last observed, the longest ago first. */
  readonly #direct = new Map<Ip, Entry>();
  readonly #proxy = new Map<Ip, Entry>();
  readonly #wheel = new ExpiryWheel<Learned>();
  /** Addresses whose verdict may have changed since `takeTouched`. */
  #touched = new Set<Ip>();
  #records = 0;
  readonly #maxEntries: number;
  readonly #onEvicted: () => void;

  /** `onEvicted`: a whole address was forgotten for want of room. */
  constructor(maxEntries: number, onEvicted: () => void) {
    this.#maxEntries = maxEntries;
    this.#onEvicted = onEvicted;
  }

  verdict(ip: Ip): Verdict | null {
    return this.#direct.has(ip) ? "direct" : this.#proxy.has(ip) ? "proxy" : null;
  }

  get counts(): BookCounts {
    return {
      maxEntries: this.#maxEntries,
      maxRecords: this.#maxRecords,
      directAddresses: this.#direct.size,
      proxyAddresses: this.#proxy.size,
      records: this.#records,
    };
  }

  /** The addresses of one verdict. */
  addresses(verdict: Verdict): Iterable<Ip> {
    return (verdict === "direct" ? this.#direct : this.#proxy).keys();
  }

  /** Forgets what has expired, then takes the observation in as far as there is room. */
  observe(observed: Observed, nowMs: number): void {
    this.expire(nowMs);
    if (observed.expiresAtMs <= nowMs) return;
    const entry = this.#find(observed.ip);
    const known = entry?.hosts.get(observed.host);
    if (known !== undefined) this.#refresh(known, observed);
    else if (entry === undefined) this.#admitAddress(observed);
    else this.#admitHost(entry, observed);
  }

  expire(nowMs: number): void {
    for (const learned of this.#wheel.take(nowMs)) this.#drop(learned);
  }

  clear(): void {
    for (const ip of [...this.#direct.keys(), ...this.#proxy.keys()]) this.#touched.add(ip);
    this.#direct.clear();
    this.#proxy.clear();
    this.#wheel.clear();
    this.#records = 0;
  }

  get hasTouched(): boolean {
    return this.#touched.size > 0;
  }

  /** Addresses that may have come, gone or changed sides since it was asked last. */
  takeTouched(): ReadonlySet<Ip> {
    const touched = this.#touched;
    this.#touched = new Set();
    return touched;
  }

  get #maxRecords(): number {
    return this.#maxEntries * RECORDS_PER_ENTRY;
  }

  #find(ip: Ip): Entry | undefined {
    return this.#direct.get(ip) ?? this.#proxy.get(ip);
  }

  #refresh(learned: Learned, { direct, expiresAtMs }: Observed): void {
    if (learned.direct !== direct) learned.entry.proxies += direct ? -1 : 1;
    learned.direct = direct;
    this.#wheel.set(learned, expiresAtMs);
    this.#place(learned.entry);
  }

  #admitAddress(observed: Observed): void {
    const full =
      this.#direct.size + this.#proxy.size >= this.#maxEntries || this.#records >= this.#maxRecords;
    if (full) this.#evict();
    this.#add({ ip: observed.ip, hosts: new Map(), proxies: 0 }, observed);
  }

  #admitHost(entry: Entry, observed: Observed): void {
    if (this.#records >= this.#maxRecords) {
      if (observed.direct) return; // a PROXY record is never dropped for a DIRECT one
      for (const learned of entry.hosts.values()) if (learned.direct) this.#remove(learned);
      if (this.#records >= this.#maxRecords) {
        const first = earliest(entry.hosts.values());
        if (first === null || first.expiresAtMs > observed.expiresAtMs) return;
        this.#remove(first);
      }
    }
    this.#add(entry, observed);
  }

  #add(entry: Entry, { host, direct, expiresAtMs }: Observed): void {
    const learned: Learned = { entry, host, direct, expiresAtMs };
    entry.hosts.set(host, learned);
    if (!direct) entry.proxies++;
    this.#records++;
    this.#wheel.set(learned, expiresAtMs);
    this.#place(entry);
  }

  #drop(learned: Learned): void {
    const { entry } = learned;
    this.#remove(learned);
    if (entry.hosts.size === 0) this.#forget(entry);
    else if (entry.proxies === 0 && this.#proxy.has(entry.ip)) this.#place(entry);
  }

  #remove(learned: Learned): void {
    const { entry } = learned;
    this.#wheel.remove(learned);
    if (!entry.hosts.delete(learned.host)) return;
    if (!learned.direct) entry.proxies--;
    this.#records--;
  }

  /** Puts the entry last on the side where it belongs now. */
  #place(entry: Entry): void {
    const { ip } = entry;
    const to = entry.proxies > 0 ? this.#proxy : this.#direct;
    const moved = !to.has(ip);
    this.#direct.delete(ip);
    this.#proxy.delete(ip);
    to.set(ip, entry);
    if (moved) this.#touched.add(ip);
  }

  #forget({ ip }: Entry): void {
    this.#direct.delete(ip);
    this.#proxy.delete(ip);
    this.#touched.add(ip);
  }

  /** A DIRECT address first: to forget that an address is PROXY would let a name cached by a client bring it back. */
  #evict(): void {
    const [oldest] = this.#direct.size > 0 ? this.#direct.values() : this.#proxy.values();
    if (oldest === undefined) return;
    for (const learned of oldest.hosts.values()) this.#remove(learned);
    this.#forget(oldest);
    this.#onEvicted();
  }
}

function earliest(all: Iterable<Learned>): Learned | null {
  let first: Learned | null = null;
  for (const learned of all) if (first === null || learned.expiresAtMs < first.expiresAtMs) first = learned;
  return first;
}
