/**
 * The TUNs of the program. They outlive a reload that leaves their settings alone: nothing is torn down, and no packet goes
 * unproxied. One whose settings change is stopped before its successor starts, because both want the same device and routes.
 */
import { isDeepStrictEqual } from "node:util";
import type { Config } from "#config/config.ts";
import { clearStale, Guard, Ownership } from "#capture/index.ts";
import { ConfigError, messageOf } from "#core/errors.ts";
import type { HandedState, ListeningSocket } from "#net/listen/inherited-sockets.ts";
import { Nftables } from "#platform/nftables.ts";
import { demandSame, isDeviceKey } from "#tun/handing-over.ts";
import type { TunSettings } from "#tun/settings.ts";
import { planBefore } from "#tun/parts.ts";
import { Tun, type TunEnv } from "#tun/tun.ts";
import { deafLearning } from "./open-bypass.ts";
import type { RuleData } from "./lists.ts";
import { TunEgress } from "./tun-egress.ts";
import { tunEnv, type TunsEnv } from "./tun-env.ts";
import { tunSettings } from "./tun-settings.ts";
import { type TunChange, NO_CHANGE } from "./tun-change.ts";

export interface ChangeHow {
  /** A TUN that cannot be opened is logged, and the others run. */
  readonly tolerant: boolean;
  /** False: the change is not about TUNs, and one that could not be opened before is not tried again. */
  readonly retries: boolean;
}

/** The device that routes of the guard lead to. */
const GUARD_KEY = "guard";

interface Prepared {
  readonly kept: readonly Tun[];
  readonly leaving: readonly Tun[];
  readonly fresh: readonly Tun[];
  readonly listsBefore: RuleData | null;
}

export class Tuns implements AsyncDisposable {
  readonly #env: TunsEnv;
  readonly #nftables = new Nftables();
  readonly #guard: Guard;
  readonly #egress: TunEgress;
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
    this.#guard = new Guard(this.#nftables, env.log, this.#ownership);
    const onNetworkChange = (): void => env.runtime()?.names.networkChanged();
    this.#egress = new TunEgress({ egress: env.egress, log: env.log, onNetworkChange });
    this.#tunEnv = tunEnv(env, {
      nftables: this.#nftables,
      guard: this.#guard,
      ownership: this.#ownership,
      egress: this.#egress,
      hold: (settings) => this.#holdBroken(settings),
      lists: () => this.#lists,
    });
  }

  /** Before anything of the first configuration leaves: a program before may have closed what it captured. */
  prepare(config: Config): void {
    const all = [config.tun, ...config.tunListeners].filter((each) => each.enable);
    const tun = all.find((each) => each.autoRedirect) ?? all.find((each) => each.autoRoute);
    if (this.#ownership.isOurs) clearStale(this.#env.log, { keepsFakes: tun !== undefined });
    if (tun === undefined || !Guard.isThere()) return;
    const { autoRedirect, autoRedirectOutputMark: outputMark, autoDetectInterface } = tun;
    const detectsInterface = tun.autoRoute && autoDetectInterface;
    this.#egress.between({ capture: { autoRedirect, outputMark }, detectsInterface });
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
    await this.#hold(leaving);
    await this.#stop(leaving);
    const missing = wanted.filter(
      (settings) => !kept.some((tun) => isDeepStrictEqual(tun.settings, settings)),
    );
    if (!this.#ownership.isOurs) demandSame(missing, this.#env.inherited);
    const asked = how.retries ? missing : missing.filter((settings) => !holds(this.#failed, settings));
    const { listsBefore } = how;
    const fresh = await this.#openAll(asked, how, { kept, leaving, listsBefore });
    await this.#release([...kept, ...fresh], wanted);
    return this.#ready({ kept, leaving, fresh, listsBefore });
  }

  /** While one capture has ended and the next has not begun, nothing passes by. */
  async #hold(ending: readonly Tun[]): Promise<void> {
    const settings = guarded(ending.map((tun) => tun.settings));
    if (settings === null) return;
    this.#egress.between(settings);
    await this.#guard.hold();
  }

  /**
   * A TUN of `wanted` that does not run is still tried again, or was asked for: until then `on-exit` decides about its
   * traffic.
   */
  async #release(running: readonly Tun[], wanted: readonly TunSettings[]): Promise<void> {
    const runs = running.some(({ capture, settings }) => settings.capture.guarded && capture !== null);
    const closed = !runs && guarded(wanted)?.capture.onExit === "closed";
    if (!closed) this.#egress.between(null);
    if (runs || closed) return;
    await (guarded(wanted) === null ? this.#guard.remove() : this.#guard.release());
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
      this.#egress.between(settings);
      if (this.#ownership.isOurs) await this.#guard.hold(planBefore(settings, this.#tunEnv));
      else this.#env.inherited.take(GUARD_KEY); // which finds its device by the name
    }
    return Tun.open(settings, this.#tunEnv);
  }

  async #undo({ kept, leaving, fresh, listsBefore }: Prepared): Promise<void> {
    if (!this.#ownership.isOurs) return; // this process ends
    await this.#hold(fresh);
    await this.#stop(fresh);
    this.#lists = listsBefore;
    await this.#restore(kept, leaving);
    await this.#release(
      this.#running,
      [...kept, ...leaving].map(({ settings }) => settings),
    );
  }

  /** Rule providers have changed. */
  async updateSets(): Promise<void> {
    await Promise.all(this.#running.map((tun) => tun.updateSets()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close({ restarting: false });
  }

  /** For another process of weir, descriptors of the same files. Rejects with `ConfigError` where one is not whole now. */
  async handles(): Promise<readonly ListeningSocket[]> {
    const fd = this.#guard.fd;
    const guard = fd === null ? [] : [{ key: GUARD_KEY, fd, endpoint: null }];
    return [
      ...guard,
      ...this.#running.flatMap((tun) => {
        const found = tun.handles();
        if (found !== null) return found;
        throw new ConfigError(`[TUN] ${tun.settings.name}: its device is being made anew; ask again`);
      }),
    ];
  }

  /** What is activated is whole in the kernel. */
  async settled(): Promise<void> {
    await Promise.all(this.#running.map((tun) => tun.settled()));
  }

  /** Until `resume` the kernel forwards nothing by what was learnt: another process learns what it may. */
  async pauseBypasses(): Promise<void> {
    await Promise.all(this.#running.map((tun) => tun.pauseBypass()));
  }

  /** It is all another process's, but for the connections that are open. Packets wait in the devices until it reads them. Answers with what it has to know. */
  pause(): readonly HandedState[] {
    this.#ownership.isOurs = false;
    return this.#running.flatMap((tun) => tun.pause());
  }

  /** The other process serves. Logs what fails: what stays of nftables goes with this process. */
  async leave(): Promise<void> {
    for (const tun of this.#running)
      await tun.leave().catch((error: unknown) => this.#env.log.warning(messageOf(error)));
  }

  /** There is no other process: everything goes on here. */
  resume(): void {
    this.#ownership.isOurs = true;
    for (const tun of this.#running) tun.activate();
  }

  /** What is captured takes its ordinary ways, unless the program comes back at once or the file says `on-exit: closed`. */
  async close({ restarting }: { readonly restarting: boolean }): Promise<void> {
    // Where another process has it all, what is closed here are descriptors.
    const running = this.#running;
    this.#running = [];
    if (restarting) await this.#hold(running);
    await this.#stop(running);
    if (restarting) await this.#guard.passOn();
    if (!restarting && !this.#guard.isForGood) await this.#guard.remove();
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
    this.#egress.between(settings);
    await this.#guard.hold();
    return { [Symbol.asyncDispose]: () => this.#release(this.#running, [settings]) };
  }
}

/** There is one at most. */
function guarded(all: readonly TunSettings[]): TunSettings | null {
  return all.find(({ capture }) => capture.guarded) ?? null;
}

function holds(all: readonly TunSettings[], one: TunSettings): boolean {
  return all.some((settings) => isDeepStrictEqual(settings, one));
}

/** A node's own mark would let the kernel send its connections into the TUN again. */
function markedNodes({ proxies }: Config, wanted: readonly TunSettings[]): readonly string[] {
  if (!wanted.some(({ capture }) => capture.autoRedirect)) return [];
  const marked = proxies.filter(({ routingMark }) => routingMark !== 0);
  return marked.map(
    ({ name }) => `proxy ${name}: routing-mark has no effect while tun.auto-redirect marks every socket`,
  );
}
