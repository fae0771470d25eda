/**
 * The program in this process, reloaded again and again: how many runtimes are left in memory, and how much memory it takes.
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
import { openHost } from "#host/host.ts";
import { LogHub } from "#host/log.ts";
import { RuleData } from "#runtime/lists.ts";
import { Runtime } from "#runtime/runtime.ts";

export interface ReloadMemory {
  readonly reloads: number;
  /** After forced collections: the present one, and one that may still be ending. */
  readonly runtimes: number;
  /** The same of what a runtime knows from lists. */
  readonly lists: number;
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
    const { files, loader, first } = setup;
    using host = openHost(home, files, log);
    const { result } = first();
    if (result.errors !== undefined) throw new Error(JSON.stringify(result.errors));
    await using app = await App.start(result.config, {
      host,
      loader,
      override: overrideWith(flags, null, setup),
      restart: () => {},
    });
    const residentMiB: number[] = [];
    for (let done = 1; done <= reloads; done++) {
      await app.reload();
      if (done % Math.max(1, Math.floor(reloads / 10)) === 0)
        residentMiB.push(Math.round(process.memoryUsage.rss() / 2 ** 20));
    }
    return { reloads, runtimes: await left(Runtime), lists: await left(RuleData), residentMiB, errors };
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/** The last old one ends in its own time: asked until the number has come down, or long enough. */
async function left(kind: typeof Runtime | typeof RuleData): Promise<number> {
  let count = Number.POSITIVE_INFINITY;
  for (let at = 0; at < 20 && count > 1; at++) {
    await wait(100);
    count = queryObjects(kind, { format: "count" });
  }
  return count;
}

if (process.argv[1] === RELOAD_MEMORY) {
  const [config = "", reloads = "50", folder] = process.argv.slice(2);
  const outcome = await reloadAgain(config, Number(reloads), folder);
  writeFileSync(1, `${JSON.stringify(outcome)}\n`);
  process.exit(0);
}
