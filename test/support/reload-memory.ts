/**
 * The program in this process, reloaded again and again: how much of old runtimes is left in memory, and how much memory it takes.
 * `node FILE CONFIG RELOADS [LISTS]` prints a `ReloadMemory` as JSON; CONFIG is copied into a home directory of its own.
 */
import { copyFileSync, cpSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { queryObjects } from "node:v8";
import { App } from "#app/app.ts";
import { parseFlags } from "#cli/flags.ts";
import { overrideWith, setUp } from "#cli/load.ts";
import { RUN_FLAGS } from "#cli/run-flags.ts";
import { DnsService } from "#dns/service.ts";
import { UpstreamPool } from "#dns/upstream/index.ts";
import { openHost } from "#host/host.ts";
import { LogHub } from "#host/log.ts";
import { EgressSockets } from "#net/dial/egress.ts";
import { CoreDialers } from "#runtime/core-dialers.ts";
import { Inbounds } from "#runtime/inbounds.ts";
import { LeaseBook } from "#runtime/leases.ts";
import { RuleData } from "#runtime/lists.ts";
import { NodeDialers } from "#runtime/node-dialers.ts";
import { Runtime } from "#runtime/runtime.ts";

/** What a reload makes anew, by the name that a failure shows. */
const KINDS = {
  runtimes: Runtime,
  lists: RuleData,
  "sets of listeners": Inbounds,
  "shares of listening sockets": LeaseBook,
  "DNS engines": DnsService,
  "pools of DNS upstreams": UpstreamPool,
  "dialers of the core": CoreDialers,
  "dialers of outbounds": NodeDialers,
  "kernel dialers": EgressSockets,
} as const;

export type ReloadKindName = keyof typeof KINDS;
type Counts = Readonly<Record<ReloadKindName, number>>;

export interface ReloadMemory {
  readonly reloads: number;
  /** How many there are after the start, and behind the reloads and forced collections. */
  readonly first: Counts;
  readonly last: Counts;
  /** Mebibytes resident after each tenth of the reloads. */
  readonly residentMiB: readonly number[];
  readonly errors: readonly string[];
}

export const RELOAD_MEMORY = fileURLToPath(import.meta.url);

/** `folder`: files that the configuration names. */
async function reloadAgain(
  config: string,
  reloads: number,
  folder: string | undefined,
): Promise<ReloadMemory> {
  const home = mkdtempSync(join(tmpdir(), "weir-reloads-"));
  const errors: string[] = [];
  try {
    if (folder !== undefined && existsSync(folder)) cpSync(folder, home, { recursive: true });
    copyFileSync(config, join(home, "config.yaml"));
    const log = new LogHub("error", { write: (line) => void errors.push(line), flush: () => {} });
    const flags = parseFlags(["-d", home], RUN_FLAGS, {});
    const setup = setUp(flags, {}, log);
    const { files, loader } = setup;
    using host = openHost(home, files, log);
    const { result } = setup.first();
    if (result.errors !== undefined) throw new Error(JSON.stringify(result.errors));
    await using app = await App.start(result.config, {
      host,
      loader,
      override: overrideWith(flags, null, setup),
      restart: () => {},
    });
    const first = counts();
    const residentMiB: number[] = [];
    for (let done = 1; done <= reloads; done++) {
      await app.reload();
      if (done % Math.max(1, Math.floor(reloads / 10)) === 0)
        residentMiB.push(Math.round(process.memoryUsage.rss() / 2 ** 20));
    }
    return { reloads, first, last: await settled(first), residentMiB, errors };
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/** Each count is behind a forced collection. */
function counts(): Counts {
  const all = Object.entries(KINDS).map(([name, kind]) => [name, queryObjects(kind, { format: "count" })]);
  return Object.fromEntries(all) as Counts;
}

/** The last old runtime ends in its own time: counted until there is no more than at the start, or long enough. */
async function settled(first: Counts): Promise<Counts> {
  let now = counts();
  for (let at = 0; at < 20 && now.runtimes > first.runtimes; at++) {
    await wait(100);
    now = counts();
  }
  return now;
}

if (process.argv[1] === RELOAD_MEMORY) {
  const [config = "", reloads = "50", folder] = process.argv.slice(2);
  const outcome = await reloadAgain(config, Number(reloads), folder);
  writeFileSync(1, `${JSON.stringify(outcome)}\n`);
  process.exit(0);
}
