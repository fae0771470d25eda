/** The real program with those that take over from it, until the end of a test. */
import { existsSync } from "node:fs";
import { askForUpgrade, requestPath } from "#upgrade/requests.ts";
import { startCore, type Core } from "./start-core.ts";
import { until } from "./until.ts";

const DRAIN_MS = 3_600_000;
/** Only there to end a test that fails: a process is started. */
const WITHIN_MS = 120_000;

export interface UpgradedCore extends AsyncDisposable {
  /** Its output is that of all of them. */
  readonly core: Core;
  /** Of the process that serves. */
  readonly pid: number;
  /** The same command takes over. Rejects with the reason where it does not. */
  upgrade(): Promise<void>;
  /** Those that live, in order of their numbers. */
  alive(): readonly number[];
  /** Asks a process to end, and waits for it. */
  end(pid: number): Promise<void>;
}

export async function openUpgradedCore(configText: string, prefix: readonly string[]): Promise<UpgradedCore> {
  const core = await startCore(configText, { prefix });
  const pids = [core.pid];
  const alive = () => pids.filter((pid) => isAlive(pid)).toSorted((left, right) => left - right);
  return {
    core,
    get pid() {
      return pids.at(-1) ?? core.pid;
    },
    alive,
    async upgrade() {
      const path = requestPath(core.home);
      await until("it can be asked", () => existsSync(path), { withinMs: WITHIN_MS });
      const answer = await askForUpgrade(core.home, { to: null, drainMs: DRAIN_MS });
      if (!answer.done) throw new Error(answer.reason);
      pids.push(answer.pid);
    },
    async end(pid) {
      process.kill(pid, "SIGTERM");
      await until(`process ${pid} ends`, () => !isAlive(pid), { withinMs: WITHIN_MS });
    },
    async [Symbol.asyncDispose]() {
      for (const pid of alive()) process.kill(pid, "SIGKILL");
      await core[Symbol.asyncDispose]();
    },
  };
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
