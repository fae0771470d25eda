/** The servers of the operating system. */
import { Resolver as SystemServers } from "node:dns";
import { readFile, stat } from "node:fs/promises";
import type { Ip } from "#core/session.ts";
import { parseIp, ipOf } from "#net/address/ip.ts";
import { openServerList, type ServerListEnv } from "./server-list.ts";
import type { Upstream } from "./upstream.ts";
import { itemAt } from "#lib/at.ts";

/** The time stamp of the file is looked at no more often than this. */
const CHECK_MS = 5000;
const WITHOUT_SYSTEM = ["114.114.114.114", "8.8.8.8"].map(ipOf);

export interface SystemEnv {
  /** `/etc/resolv.conf`; null where the system has no such file. */
  readonly resolvConf: string | null;
  /** Our own DNS addresses (TUN): asking them would be asking ourselves. */
  readonly ownAddresses: () => ReadonlySet<Ip>;
  readonly openServer: ServerListEnv["openServer"];
  readonly nowMs: () => number;
}

export function openSystemUpstream(env: SystemEnv): Upstream {
  const servers = new SystemServerSource(env);
  return openServerList({
    text: "system",
    current: () => servers.current(),
    forget: () => servers.forget(),
    openServer: env.openServer,
    exit: null,
  });
}

class SystemServerSource {
  readonly #env: SystemEnv;
  #checkedAtMs = Number.NEGATIVE_INFINITY;
  #stamp = "";
  #servers: readonly Ip[] = [];
  /** Queries that come while the file is read wait for it: without its servers they would go to the wrong ones. */
  #reading: Promise<readonly Ip[]> = Promise.resolve([]);

  constructor(env: SystemEnv) {
    this.#env = env;
  }

  forget(): void {
    this.#checkedAtMs = Number.NEGATIVE_INFINITY;
  }

  async current(): Promise<readonly Ip[]> {
    const now = this.#env.nowMs();
    if (Math.abs(now - this.#checkedAtMs) >= CHECK_MS) {
      this.#checkedAtMs = now;
      this.#reading = this.#read();
    }
    this.#servers = await this.#reading;
    const own = this.#env.ownAddresses();
    const usable = this.#servers.filter((ip) => !own.has(ip));
    return usable.length > 0 ? usable : WITHOUT_SYSTEM;
  }

  async #read(): Promise<readonly Ip[]> {
    const { resolvConf } = this.#env;
    if (resolvConf === null) return addressesIn(new SystemServers().getServers());
    try {
      const { mtimeMs, size, ino } = await stat(resolvConf);
      const stamp = `${mtimeMs} ${size} ${ino}`;
      if (stamp === this.#stamp) return this.#servers;
      const servers = parseResolvConf(await readFile(resolvConf, "utf8"));
      if (servers.length === 0) return this.#servers; // it is being written, or the network is away: no reason to ask other servers
      this.#stamp = stamp;
      return servers;
    } catch {
      return this.#servers; // no such file just now (it is being replaced): what was known stays
    }
  }
}

/** The addresses of `nameserver` lines (resolv.conf(5)). */
export function parseResolvConf(text: string): readonly Ip[] {
  return addressesIn(Array.from(text.matchAll(/^[ \t]*nameserver[ \t]+(\S+)/gm), (line) => itemAt(line, 1)));
}

export function addressesIn(texts: readonly string[]): readonly Ip[] {
  return [...new Set(texts.map((text) => parseIp(text)).filter((ip) => ip !== null))];
}
