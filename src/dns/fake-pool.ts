/** Synthetic addresses of one family: names in, addresses out, and back (dns.md §6.1, §6.2). */
import { ConfigError } from "#core/errors.ts";
import type { Ip, IpPrefix } from "#core/session.ts";
import type { NamedRange } from "#net/address/named-addresses.ts";
import { AddressRange } from "#net/address/address-range.ts";
import { NumberedNames } from "#lib/numbered-names.ts";
import type { Steps } from "#lib/steps.ts";

/** Offset 1 is the gateway, 2 the TUN's next address, 3 is kept free. */
const FIRST_OFFSET = 4;
/** Pairs that are remembered: about 10 MB at the bound, where the pair unused for the longest time is forgotten. */
const MAX_PAIRS = 65_536;
/** Offsets are kept as numbers; a larger IPv6 range is used up to here. */
const MAX_HOST_BITS = 40;

/** What survives a restart. */
export interface FakePoolState {
  /** The network as text; a state of another range is not used. */
  readonly range: string;
  readonly offset: number;
  readonly cycle: boolean;
  readonly pairs: Iterable<readonly [host: string, ip: Ip]>;
}

/** Called for every name that gets an address or loses it. */
export type OnChange = (host: string) => void;

export class FakePool {
  readonly range: string;
  readonly gateway: Ip;
  readonly #range: AddressRange;
  /** For other threads. A pool that another takes the place of soon is given none. */
  #shared: NumberedNames | null = null;
  readonly #last: number;
  /** In order of use. */
  readonly #offsets = new Map<string, number>();
  readonly #hosts = new Map<number, string>();
  readonly #onChange: OnChange;
  #offset = FIRST_OFFSET - 1;
  #cycle = false;

  /** Throws `ConfigError` where the range has no room. */
  constructor({ ip, bits }: IpPrefix, onChange: OnChange) {
    this.#range = new AddressRange({ ip, bits });
    this.#last = 2 ** Math.min(this.#range.hostBits, MAX_HOST_BITS) - 1;
    if (this.#last <= FIRST_OFFSET)
      throw new ConfigError(`fake-ip-range ${ip}/${bits} is too small, expected a prefix of /29 or shorter`);
    this.range = `${this.#range.first}/${bits}`;
    this.gateway = this.#ipOf(1);
    this.#onChange = onChange;
  }

  /** The address of a name, a new one where it has none. */
  allocate(host: string): Ip {
    const known = this.#offsets.get(host);
    if (known !== undefined) {
      this.#touch(host, known);
      return this.#ipOf(known);
    }
    const offset = this.#vacate();
    this.#offsets.set(host, offset);
    this.#hosts.set(offset, host);
    this.#names.put(offset, host);
    this.#onChange(host);
    return this.#ipOf(offset);
  }

  get #names(): NumberedNames {
    return (this.#shared ??= new NumberedNames());
  }

  /** The addresses, and what names they stand for now, for other threads. */
  get named(): NamedRange {
    return { range: { ip: this.#range.first, bits: this.#range.bits }, names: this.#names.memory };
  }

  /** The next free offset; in a full range that of the name unused for the longest time, for the others are in use. */
  #vacate(): number {
    const [oldest] = this.#offsets;
    const isFull = this.#offsets.size >= this.#last - FIRST_OFFSET;
    if (oldest !== undefined && (isFull || this.#offsets.size >= MAX_PAIRS)) this.#forget(oldest[0]);
    if (oldest !== undefined && isFull) {
      this.#cycle = true;
      return oldest[1];
    }
    do this.#step();
    while (this.#hosts.has(this.#offset));
    return this.#offset;
  }

  #step(): void {
    this.#offset++;
    if (this.#offset < this.#last) return;
    this.#offset = FIRST_OFFSET;
    this.#cycle = true;
  }

  has(host: string): boolean {
    return this.#offsets.has(host);
  }

  hostOf(ip: Ip): string | null {
    const offset = this.#offsetOf(ip);
    const host = offset === null ? undefined : this.#hosts.get(offset);
    if (host === undefined || offset === null) return null;
    this.#touch(host, offset);
    return host;
  }

  /** Inside the range and neither the gateway nor the broadcast address. */
  isFake(ip: Ip): boolean {
    const offset = this.#offsetOf(ip);
    return offset !== null && offset !== 1 && offset < this.#last;
  }

  flush(): void {
    for (const host of this.#offsets.keys()) this.#forget(host);
    this.#offset = FIRST_OFFSET - 1;
    this.#cycle = false;
  }

  get offset(): number {
    return this.#offset;
  }

  get cycle(): boolean {
    return this.#cycle;
  }

  /** Names that have an address, the least recently used first. */
  hosts(): Iterable<string> {
    return this.#offsets.keys();
  }

  /** Null: it has none. Is no use of it. */
  ipOfHost(host: string): Ip | null {
    const offset = this.#offsets.get(host);
    return offset === undefined ? null : this.#ipOf(offset);
  }

  /** Into a pool that is empty. A state of another range, or one that makes no sense, leaves it so. Reports no changes. */
  *restore(state: FakePoolState): Steps<void> {
    if (!this.#fits(state)) return;
    for (const [host, ip] of state.pairs) {
      const isFull = this.#offsets.size >= MAX_PAIRS;
      yield;
      if (!isFull) this.#put(host, ip);
    }
    this.#offset = state.offset;
    this.#cycle = state.cycle;
  }

  /** Becomes what the state says, and reports each name of which that changes anything; else as `restore`. */
  *become(state: FakePoolState): Steps<void> {
    if (!this.#fits(state)) return;
    const before = new Map(this.#offsets);
    this.#offsets.clear();
    this.#hosts.clear();
    this.#shared?.clear();
    yield* this.restore(state);
    for (const [host, offset] of this.#offsets) if (before.get(host) !== offset) this.#onChange(host);
    for (const host of before.keys()) if (!this.#offsets.has(host)) this.#onChange(host);
  }

  /** An address that another process has given to the name. False: it is none of this range. */
  adopt(host: string, ip: Ip): boolean {
    if (!this.#put(host, ip)) return false;
    const [oldest] = this.#offsets;
    if (oldest !== undefined && this.#offsets.size > MAX_PAIRS) this.#forget(oldest[0]);
    this.#onChange(host);
    return true;
  }

  get state(): FakePoolState {
    const pairs = this.#offsets.entries().map(([host, offset]) => [host, this.#ipOf(offset)] as const);
    return { range: this.range, offset: this.#offset, cycle: this.#cycle, pairs };
  }

  #fits({ range, offset }: FakePoolState): boolean {
    return (
      range === this.range && Number.isInteger(offset) && offset >= FIRST_OFFSET - 1 && offset < this.#last
    );
  }

  #put(host: string, ip: Ip): boolean {
    const at = this.#offsetOf(ip);
    if (at === null || at < FIRST_OFFSET || at >= this.#last) return false;
    this.#remove(this.#hosts.get(at));
    this.#remove(host);
    this.#offsets.set(host, at);
    this.#hosts.set(at, host);
    this.#names.put(at, host);
    return true;
  }

  #touch(host: string, offset: number): void {
    this.#offsets.delete(host);
    this.#offsets.set(host, offset);
  }

  #forget(host: string): void {
    this.#remove(host);
    this.#onChange(host);
  }

  /** Both directions together: a pair of which one half is gone would lead a client astray. */
  #remove(host: string | undefined): void {
    const offset = host === undefined ? undefined : this.#offsets.get(host);
    if (host === undefined || offset === undefined) return;
    this.#offsets.delete(host);
    this.#hosts.delete(offset);
    this.#names.remove(offset);
  }

  #ipOf(offset: number): Ip {
    return this.#range.at(offset);
  }

  /** Null: outside the range, or beyond what is used of it. */
  #offsetOf(ip: Ip): number | null {
    const offset = this.#range.offsetOf(ip);
    return offset !== null && offset <= this.#last ? offset : null;
  }
}
