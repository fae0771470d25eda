import { join } from "node:path";
import type { SafeFiles } from "#core/files.ts";
import type { Choices } from "#core/group.ts";
import type { Ledger } from "#core/meter.ts";
import { SocketPool } from "#net/socket-pool.ts";
import { countingLedger } from "#relay/counting-ledger.ts";
import { DatagramBudget } from "#relay/datagram-budget.ts";
import { LiveTable } from "#relay/live-table.ts";
import { Sweep } from "#relay/sweep.ts";
import { MemoryChoices } from "#store/memory-choices.ts";
import { ProfileCache } from "#store/profile-cache.ts";
import type { LogHub } from "./log.ts";

/** What outlives a reload: listening sockets, the table of connections, the ledger, choices, the log. */
export interface Host extends Disposable {
  /** Absolute path of the home directory; it need not exist. */
  readonly home: string;
  readonly log: LogHub;
  readonly files: SafeFiles;
  readonly sockets: SocketPool;
  readonly live: LiveTable;
  readonly ledger: Ledger;
  readonly cache: ProfileCache;
  /** Takes the place of the cache's where `profile.store-selected` is false. */
  readonly choices: Choices;
  readonly sweep: Sweep;
  readonly datagrams: DatagramBudget;
}

export function openHost(home: string, files: SafeFiles, log: LogHub): Host {
  const cache = new ProfileCache(join(home, "cache.db"), log);
  return {
    home,
    log,
    files,
    sockets: new SocketPool(),
    live: new LiveTable(),
    ledger: countingLedger(),
    cache,
    choices: new MemoryChoices(),
    sweep: new Sweep(),
    datagrams: new DatagramBudget(),
    [Symbol.dispose]: () => cache[Symbol.dispose](),
  };
}
