/** Names that the user or the system pinned to addresses (dns.md §5). */
import { readFile, stat } from "node:fs/promises";
import { networkInterfaces } from "node:os";
import type { HostEntry, HostValue } from "#core/dns-options.ts";
import { ConfigError } from "#core/errors.ts";
import type { Ip } from "#core/session.ts";
import type { Slices } from "#core/slices.ts";
import type { DomainPattern } from "#lib/domain-pattern.ts";
import { DomainTrie } from "#lib/domain-trie.ts";
import { parseIp, LOOPBACK_V4 } from "#net/address/ip.ts";
import { patternOf } from "./policy.ts";
import { itemAt } from "#lib/at.ts";

export const HOSTS_TTL_SECONDS = 10;
const MAX_ALIASES = 16;
const CHECK_MS = 5000;
/** A larger system file is not read: it would be a block list, which belongs into rules. */
const MAX_FILE_BYTES = 16 << 20;

/** `name`: where the alias chain ends. `addresses`: null where that name is not in the table. */
export interface HostsHit {
  readonly name: string;
  readonly addresses: readonly Ip[] | null;
}

export interface Hosts {
  /** `host` is lower case without a last dot; null: not in the table. */
  find(host: string): HostsHit | null;
}

export interface HostsWatcher {
  /** It is looked at now, for the next time after `againMs` at the earliest; `changed` is called where it is another one. */
  checked(nowMs: number, againMs: number): void;
  /** What was answered before may be wrong now. */
  changed(): void;
}

export interface HostsEnv {
  readonly entries: readonly HostEntry[];
  /** The system's own file, asked after the table for exact names; null: not used. */
  readonly systemFile: string | null;
  readonly nowMs: () => number;
  readonly slices: Slices;
  /** Is told of the system's file. */
  readonly watcher?: HostsWatcher;
}

/** Throws `ConfigError` for a bad pattern and for aliases that lead back to themselves. */
export async function openHosts({ entries, systemFile, nowMs, slices, watcher }: HostsEnv): Promise<Hosts> {
  const lan = lanAddresses();
  const withBuiltIn = [...entries, { pattern: "localhost", value: LOCALHOST }];
  const patterns = withBuiltIn
    .values()
    .map(({ pattern, value }): [DomainPattern, HostValue] => [
      patternOf(pattern),
      value.kind === "lan" ? { kind: "addresses", addresses: lan } : value,
    ]);
  const trie = await slices.run(DomainTrie.build(patterns));
  const system = systemFile === null ? null : new SystemHosts(systemFile, nowMs, watcher);
  await system?.load();
  const hosts = { find: (host: string) => follow(host, trie, system) };
  for (const { pattern, value } of entries) {
    if (value.kind === "alias") refuseCycle(pattern, value.name, trie);
    if (slices.isOver) await slices.pause();
  }
  return hosts;
}

const LOCALHOST: HostValue = { kind: "addresses", addresses: [LOOPBACK_V4] };

function follow(host: string, trie: DomainTrie<HostValue>, system: SystemHosts | null): HostsHit | null {
  let name = host;
  const seen = new Set<string>();
  for (let step = 0; step < MAX_ALIASES && !seen.has(name); step++) {
    const value = trie.get(name);
    if (value?.kind === "addresses") return { name, addresses: value.addresses };
    if (value === undefined || value.kind === "lan") break;
    seen.add(name);
    name = value.name;
  }
  const listed = seen.has(name) ? null : (system?.find(name) ?? null);
  return listed === null && name === host ? null : { name, addresses: listed };
}

function refuseCycle(pattern: string, first: string, trie: DomainTrie<HostValue>): void {
  const seen = new Set<string>([pattern]);
  for (let name: string | undefined = first; name !== undefined;) {
    if (seen.has(name)) throw new ConfigError(`hosts: ${[...seen, name].join(" -> ")} leads back to itself`);
    seen.add(name);
    const value: HostValue | undefined = trie.get(name);
    name = value?.kind === "alias" ? value.name : undefined;
  }
}

/** All addresses of this machine that others can reach. */
function lanAddresses(): readonly Ip[] {
  const all = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  const usable = all.filter(({ internal, address }) => !internal && !/^(169\.254\.|fe[89ab])/i.test(address));
  return usable.map(({ address }) => parseIp(address)).filter((ip) => ip !== null);
}

class SystemHosts {
  readonly #path: string;
  readonly #nowMs: () => number;
  readonly #watcher: HostsWatcher | null;
  #names: ReadonlyMap<string, readonly Ip[]> = new Map();
  #stamp = "";
  #checkedAtMs = 0;

  constructor(path: string, nowMs: () => number, watcher: HostsWatcher | null = null) {
    this.#path = path;
    this.#nowMs = nowMs;
    this.#watcher = watcher;
  }

  /** Answers from what is loaded; a change of the file is seen within seconds. */
  find(host: string): readonly Ip[] | null {
    if (Math.abs(this.#nowMs() - this.#checkedAtMs) >= CHECK_MS) void this.load();
    return this.#names.get(host) ?? null;
  }

  async load(): Promise<void> {
    this.#checkedAtMs = this.#nowMs();
    this.#watcher?.checked(this.#checkedAtMs, CHECK_MS);
    try {
      const { mtimeMs, size } = await stat(this.#path);
      const stamp = `${mtimeMs} ${size}`;
      if (stamp === this.#stamp || size > MAX_FILE_BYTES) return;
      this.#names = parseHostsFile(await readFile(this.#path, "utf8"));
      this.#stamp = stamp;
      this.#watcher?.changed();
    } catch {
      // no such file on this system, or it is being replaced: what was known stays
    }
  }
}

/** hosts(5): address, then names; `#` starts a comment. */
export function parseHostsFile(text: string): ReadonlyMap<string, readonly Ip[]> {
  const names = new Map<string, Ip[]>();
  for (const line of text.split("\n")) {
    const [address = "", ...aliases] = itemAt(line.split("#", 1), 0).trim().split(/\s+/);
    const ip = parseIp(address);
    if (ip === null) continue;
    for (const alias of aliases) {
      const name = alias.toLowerCase().replace(/\.$/, "");
      const known = names.get(name);
      if (known === undefined) names.set(name, [ip]);
      else if (!known.includes(ip)) known.push(ip);
    }
  }
  return names;
}
