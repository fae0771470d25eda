/**
 * The TUNs of the program. They outlive a reload that leaves their settings alone: nothing is torn down, and no packet goes
 * unproxied. One whose settings change is stopped before its successor starts, because both want the same device and routes.
 */
import { isDeepStrictEqual } from "node:util";
import type { Config } from "#config/config.ts";
import { clearStale, Guard, Ownership } from "#capture/index.ts";
import { messageOf } from "#core/errors.ts";
import { Nftables } from "#platform/nftables.ts";
import { demandSame, isDeviceKey } from "#tun/handing-over.ts";
import type { TunSettings } from "#tun/settings.ts";
import { planBefore } from "#tun/parts.ts";
import { Tun, type TunEnv } from "#tun/tun.ts";
import { clearStaleBypass, deafLearning } from "./open-bypass.ts";
import type { RuleData } from "./lists.ts";
import { TunEgress } from "./tun-egress.ts";
import { TunGuard } from "./tun-guard.ts";
import { TunHandover } from "./tun-handover.ts";
import { tunEnv, type TunsEnv } from "./tun-env.ts";
import { markedNodes, tunSettings } from "./tun-settings.ts";
import { type TunChange, NO_CHANGE } from "./tun-change.ts";

export interface ChangeHow {
  /** A TUN that cannot be opened is logged, and the others run. */
  readonly tolerant: boolean;
  /** False: the change is not about TUNs, and one that could not be opened before is not tried again. */
  readonly retries: boolean;
}

interface Prepared {
  readonly kept: readonly Tun[];
  readonly leaving: readonly Tun[];
  readonly fresh: readonly Tun[];
  readonly listsBefore: RuleData | null;
}

export class Tuns implements AsyncDisposable {
  readonly #env: TunsEnv;
  /** To another process of weir. */
  readonly handover: TunHandover;
  readonly #guard: TunGuard;
  readonly #tunEnv: TunEnv;
  readonly #ownership = new Ownership();
  #running: readonly Tun[] = [];
  /** Of the configuration that the newest TUNs belong to. */
  #lists: RuleData | null = null;
  /** Could not be opened at the start; a change of something else does not fail for it. */
  #failed: readonly TunSettings[] = [];

  constructor(env: TunsEnv) {
    this.#env = env;
    this.#ownership.isOurs = !env.inherited.keys.some(isDeviceKey);
    const nftables = new Nftables();
    const guard = new Guard(nftables, env.log, this.#ownership);
    const onNetworkChange = (): void => env.runtime()?.names.networkChanged();
    const egress = new TunEgress({ egress: env.egress, log: env.log, onNetworkChange });
    this.#guard = new TunGuard(guard, egress);
    this.handover = new TunHandover({
      running: () => this.#running,
      guard: this.#guard,
      ownership: this.#ownership,
      log: env.log,
    });
    this.#tunEnv = tunEnv(env, {
      nftables,
      guard,
      ownership: this.#ownership,
      egress,
      hold: (settings) => this.#holdBroken(settings),
      lists: () => this.#lists,
    });
  }

  /** Before anything of the first configuration leaves: a program before may have closed what it captured. */
  prepare(config: Config): void {
    const all = [config.tun, ...config.tunListeners].filter((each) => each.enable);
    const tun = all.find((each) => each.autoRedirect) ?? all.find((each) => each.autoRoute);
    if (this.#ownership.isOurs) {
      clearStale(this.#env.log, { keepsFakes: tun !== undefined });
      clearStaleBypass(this.#env.log);
    }
    if (tun === undefined || !Guard.isThere()) return;
    const { autoRedirect, autoRedirectOutputMark: outputMark, autoDetectInterface } = tun;
    const detectsInterface = tun.autoRoute && autoDetectInterface;
    this.#guard.expect({ capture: { autoRedirect, outputMark }, detectsInterface });
  }

  /** By the inbound's name. */
  get(name: string): Tun | null {
    return this.#running.find(({ settings }) => settings.name === name) ?? null;
  }

  /** Throws with the TUNs of before running again. */
  async change(config: Config, lists: RuleData, how: ChangeHow): Promise<TunChange> {
    const listsBefore = this.#lists;
    this.#lists = lists;
    try {
      return await this.#change(config, { ...how, listsBefore });
    } catch (error) {
      if (!how.tolerant) throw error;
      this.#env.log.error(messageOf(error));
      return NO_CHANGE;
    }
  }

  async #change(config: Config, how: ChangeHow & Pick<Prepared, "listsBefore">): Promise<TunChange> {
    const before = this.#running;
    const wanted = tunSettings(config);
    for (const text of [...deafLearning(config, wanted), ...markedNodes(config, wanted)])
      this.#env.log.warning(text);
    const kept = before.filter(({ settings }) => holds(wanted, settings));
    const leaving = before.filter((tun) => !kept.includes(tun));
    await this.#guard.hold(leaving.map(settingsOf));
    await this.#stop(leaving);
    const missing = wanted.filter(
      (settings) => !kept.some((tun) => isDeepStrictEqual(tun.settings, settings)),
    );
    if (!this.#ownership.isOurs) demandSame(missing, this.#env.inherited);
    const asked = how.retries ? missing : missing.filter((settings) => !holds(this.#failed, settings));
    const { listsBefore } = how;
    const fresh = await this.#openAll(asked, how, { kept, leaving, listsBefore });
    await this.#guard.release([...kept, ...fresh], wanted);
    return this.#ready({ kept, leaving, fresh, listsBefore });
  }

  async #openAll(
    asked: readonly TunSettings[],
    { tolerant }: ChangeHow,
    before: Omit<Prepared, "fresh">,
  ): Promise<readonly Tun[]> {
    const fresh: Tun[] = [];
    for (const settings of asked)
      try {
        fresh.push(await this.#open(settings));
      } catch (error) {
        if (!tolerant) {
          await this.#undo({ ...before, fresh });
          throw error;
        }
        this.#failed = [...this.#failed, settings];
        this.#env.log.error(messageOf(error));
      }
    return fresh;
  }

  async #open(settings: TunSettings): Promise<Tun> {
    if (settings.capture.guarded) {
      if (!this.#ownership.isOurs) this.#guard.takeOver(settings, this.#env.inherited);
      else await this.#guard.holdBefore(settings, () => planBefore(settings, this.#tunEnv));
    }
    return Tun.open(settings, this.#tunEnv);
  }

  async #undo({ kept, leaving, fresh, listsBefore }: Prepared): Promise<void> {
    if (!this.#ownership.isOurs) return; // this process ends
    await this.#guard.hold(fresh.map(settingsOf));
    await this.#stop(fresh);
    this.#lists = listsBefore;
    await this.#restore(kept, leaving);
    await this.#guard.release(this.#running, [...kept, ...leaving].map(settingsOf));
  }

  /** Rule providers have changed. */
  async updateSets(): Promise<void> {
    await Promise.all(this.#running.map((tun) => tun.updateSets()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close({ restarting: false });
  }

  /** What is activated is whole in the kernel. */
  async settled(): Promise<void> {
    await Promise.all(this.#running.map((tun) => tun.settled()));
  }

  /** What is captured takes its ordinary ways, unless the program comes back at once or the file says `on-exit: closed`. */
  async close({ restarting }: { readonly restarting: boolean }): Promise<void> {
    // Where another process has it all, what is closed here are descriptors.
    const running = this.#running;
    this.#running = [];
    if (restarting) await this.#guard.hold(running.map(settingsOf));
    await this.#stop(running);
    await this.#guard.end({ restarting });
  }

  /** A runtime keeps the change for its whole life, so a change in force forgets the lists of the runtime before. */
  #ready(prepared: Prepared): TunChange {
    let pending: Prepared | null = prepared;
    return {
      activate: () => {
        const { kept, fresh } = pending as Prepared;
        pending = null;
        this.#running = [...kept, ...fresh];
        this.#ownership.isOurs = true;
        for (const tun of fresh) tun.activate();
        for (const tun of kept) void tun.updateSets();
      },
      [Symbol.asyncDispose]: async () => {
        if (pending !== null) await this.#undo(pending);
      },
    };
  }

  /** What was stopped for a change that failed starts again. */
  async #restore(kept: readonly Tun[], stopped: readonly Tun[]): Promise<void> {
    const again: Tun[] = [];
    for (const { settings } of stopped) {
      try {
        const tun = await this.#open(settings);
        tun.activate();
        again.push(tun);
      } catch (error) {
        this.#env.log.error(`the TUN of before cannot be put back: ${messageOf(error)}`);
      }
    }
    this.#running = [...kept, ...again];
  }

  async #stop(tuns: readonly Tun[]): Promise<void> {
    for (const tun of tuns)
      try {
        await tun[Symbol.asyncDispose]();
      } catch (error) {
        this.#env.log.error(`closing the TUN ${tun.settings.name}: ${messageOf(error)}`);
      }
  }

  /** For a TUN whose device was deleted by another program. */
  async #holdBroken(settings: TunSettings): Promise<AsyncDisposable | null> {
    if (!settings.capture.guarded) return null;
    await this.#guard.hold([settings]);
    return { [Symbol.asyncDispose]: () => this.#guard.release(this.#running, [settings]) };
  }
}

function settingsOf({ settings }: Tun): TunSettings {
  return settings;
}

function holds(all: readonly TunSettings[], one: TunSettings): boolean {
  return all.some((settings) => isDeepStrictEqual(settings, one));
}
