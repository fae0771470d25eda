/** The real program with those that take over from it, until the end of a test. */
import { existsSync } from "node:fs";
import { askForUpgrade, requestPath } from "#upgrade/requests.ts";
import { startCore, type Core } from "./start-core.ts";
import { until } from "./until.ts";
import { processesIn } from "./upgrade-world.ts";

const DRAIN_MS = 3_600_000;
/** Only there to end a test that fails: a process is started. */
const WITHIN_MS = 120_000;

export interface UpgradedCore extends AsyncDisposable {
  /** Its output is that of all of them. */
  readonly core: Core;
  /** Of the process that serves. */
  readonly pid: number;
  /** The same command takes over, or `to`. Rejects with the reason where it does not. */
  upgrade(to?: string): Promise<void>;
  /** Those that live, in order of their numbers. */
  alive(): readonly number[];
  /** Asks a process to end, and waits for it. */
  end(pid: number): Promise<void>;
}

export async function openUpgradedCore(configText: string, prefix: readonly string[]): Promise<UpgradedCore> {
  const core = await startCore(configText, { prefix });
  let { pid } = core;
  const alive = () => processesIn(core.home).toSorted((left, right) => left - right);
  return {
    core,
    get pid() {
      return pid;
    },
    alive,
    async upgrade(to) {
      const path = requestPath(core.home);
      await until("it can be asked", () => existsSync(path), { withinMs: WITHIN_MS });
      const answer = await askForUpgrade(core.home, { to: to ?? null, drainMs: DRAIN_MS });
      if (!answer.done) throw new Error(answer.reason);
      pid = answer.pid;
    },
    async end(leaving) {
      process.kill(leaving, "SIGTERM");
      await until(`process ${leaving} ends`, () => !alive().includes(leaving), { withinMs: WITHIN_MS });
    },
    async [Symbol.asyncDispose]() {
      for (const each of alive()) process.kill(each, "SIGKILL");
      await until("all processes end", () => alive().length === 0);
      await core[Symbol.asyncDispose]();
    },
  };
}
