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
const ENDING = "weir was asked to end";

export class Upgrades implements Disposable {
  readonly #old: OldProcess;
  readonly #done = Promise.withResolvers<Upgraded>();
  readonly #stop = new AbortController();
  #requests: Disposable | null = null;
  #isRunning = false;
  /** The one that is being made, or the last: null where it has failed. */
  #made: Promise<Upgraded | null> = Promise.resolve(null);

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
    const made = Promise.withResolvers<Upgraded | null>();
    this.#made = made.promise;
    const { log, live } = this.#old.host;
    try {
      log.info(`upgrade: starting ${to ?? "the same command once more"}`);
      const { upgradeTo } = await import("./old-process.ts"); // few processes ever need it
      const successor = await upgradeTo(targetOf(to), this.#old, this.#stop.signal);
      made.resolve({ successor, drainMs });
      this.#done.resolve({ successor, drainMs });
      return { done: true, pid: successor.pid, connections: live.size, drainMs };
    } catch (error) {
      this.#isRunning = false;
      made.resolve(null);
      const reason = messageOf(error);
      log.error(`upgrade: nothing has changed: ${reason}`);
      return { done: false, reason };
    }
  }

  /** Weir is to end: an upgrade fails at once. Resolves with the one that has been made all the same; null: none. */
  stop(): Promise<Upgraded | null> {
    this.#stop.abort(ENDING);
    return this.#made;
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
