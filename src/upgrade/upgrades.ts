/** Upgrades of a program that runs: asked for by `weir upgrade` or a signal, one at a time. */
import { messageOf } from "#core/errors.ts";
import type { OldProcess, Target } from "./old-process.ts";
import { openRequests, type UpgradeAnswer, type UpgradeRequest } from "./requests.ts";
import type { Successor } from "./successor.ts";

export interface Upgraded {
  readonly successor: Successor;
  /** What connections here get to end by themselves. */
  readonly drainMs: number;
}

/** Where none is said: long enough for a download, and far less than a day. */
export const DRAIN_MS = 600_000;

export class Upgrades implements Disposable {
  readonly #old: OldProcess;
  readonly #done = Promise.withResolvers<Upgraded>();
  #requests: Disposable | null = null;
  #isRunning = false;

  constructor(old: OldProcess) {
    this.#old = old;
  }

  /** Settles when another process serves. */
  get done(): Promise<Upgraded> {
    return this.#done.promise;
  }

  /** From now on `weir upgrade` reaches this process. */
  async listen(): Promise<void> {
    const { home, log } = this.#old.host;
    this.#requests = await openRequests(home, (asked) => this.ask(asked), log);
  }

  /** Never rejects. */
  async ask({ to, drainMs }: UpgradeRequest): Promise<UpgradeAnswer> {
    if (this.#isRunning) return { done: false, reason: "an upgrade is being made already" };
    this.#isRunning = true;
    const { log, live } = this.#old.host;
    try {
      log.info(`upgrade: starting ${to ?? "the same command once more"}`);
      const { upgradeTo } = await import("./old-process.ts"); // few processes ever need it
      const successor = await upgradeTo(targetOf(to), this.#old);
      this.#done.resolve({ successor, drainMs });
      return { done: true, pid: successor.pid, connections: live.size, drainMs };
    } catch (error) {
      this.#isRunning = false;
      const reason = messageOf(error);
      log.error(`upgrade: nothing has changed: ${reason}`);
      return { done: false, reason };
    }
  }

  [Symbol.dispose](): void {
    this.#requests?.[Symbol.dispose]();
  }
}

/** With the arguments of this process: flags name the configuration and the home directory. */
function targetOf(to: string | null): Target {
  if (to !== null) return { command: to, args: process.argv.slice(2) };
  return { command: process.execPath, args: [...process.execArgv, ...process.argv.slice(1)] };
}
