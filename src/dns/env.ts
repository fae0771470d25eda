/** What the engine is given. */
import type { HostEntry, NameserverOptions } from "#core/dns-options.ts";
import type { Log } from "#core/log.ts";
import type { NameTables } from "#lib/name-table.ts";
import type { Ip } from "#core/session.ts";
import type { Slices } from "#core/slices.ts";
import type { Trust } from "#core/trust.ts";
import type { PersistFakeIp } from "./journaled-pool.ts";
import type { Observer } from "./observe.ts";
import type { NameSets } from "./policy.ts";
import type { CountryOf } from "./strategy.ts";
import type { Exit } from "./upstream/upstream.ts";

export interface SystemEnv {
  /** In file order; empty where there is no section. */
  readonly hosts: readonly HostEntry[];
  /**
   * How an upstream without exit, with a named one, or one that follows the rules is dialled. Asked at every dial, so
   * proxies may be built after this. A name that is no proxy or group is an interface. Throws `DialError`.
   */
  readonly exitFor: (server: Pick<NameserverOptions, "exit" | "followRules">) => Exit;
  /** Addresses that lead back to this service (TUN DNS): never asked as system servers. */
  readonly ownAddresses: () => ReadonlySet<Ip>;
  /** The global `ipv6`; false: the core looks up no IPv6 addresses. Answers to clients depend on `dns.ipv6`. */
  readonly ipv6: boolean;
  readonly log: Log;
  /** Wall clock in milliseconds; it may jump either way. */
  readonly nowMs: () => number;
  /** For what other threads know of names; absent: the engine makes a table of its own. */
  readonly nameTables?: NameTables;
  /** Long tables are built in these. */
  readonly slices: Slices;
  /** Null where the system has no such file. `hostsFile` null also switches it off. */
  readonly resolvConf: string | null;
  readonly hostsFile: string | null;
  /** Absent: the authorities of the runtime alone. */
  readonly trust?: Trust;
  /** See `UpstreamPoolEnv`. */
  readonly mostSockets?: number;
}

export interface DnsEnv extends SystemEnv {
  /** False: servers that are asked over QUIC alone are left out of their lists. Asked only where there are such. */
  readonly hasQuic: () => boolean;
  readonly sets: NameSets;
  /** Null: no answer is judged by country. */
  readonly countryOf: CountryOf | null;
  /** Kernel-direct; asked at every answer. */
  readonly observer: () => Observer | null;
  /** Takes changes of the fake-IP pools to the store, every 200 ms at most; null: not kept. */
  readonly persist: PersistFakeIp | null;
}
