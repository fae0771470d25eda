/** The TUNs that run, with the guard around them, go to another process of weir, or come back. */
import type { Ownership } from "#capture/index.ts";
import { ConfigError, messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { HandedState, ListeningSocket } from "#net/listen/inherited-sockets.ts";
import type { Tun } from "#tun/tun.ts";
import type { TunGuard } from "./tun-guard.ts";

export interface TunHandoverEnv {
  readonly running: () => readonly Tun[];
  readonly guard: TunGuard;
  readonly ownership: Ownership;
  readonly log: Log;
}

export class TunHandover {
  readonly #env: TunHandoverEnv;

  constructor(env: TunHandoverEnv) {
    this.#env = env;
  }

  /** Descriptors of the same files. Rejects with `ConfigError` where one is not whole now. */
  async handles(): Promise<readonly ListeningSocket[]> {
    return [
      ...this.#env.guard.handles(),
      ...this.#env.running().flatMap((tun) => {
        const found = tun.handles();
        if (found !== null) return found;
        throw new ConfigError(`[TUN] ${tun.settings.name}: its device is being made anew; ask again`);
      }),
    ];
  }

  /** Until `resume` the kernel forwards nothing by what was learnt: another process learns what it may. */
  async pauseBypasses(): Promise<void> {
    await Promise.all(this.#env.running().map((tun) => tun.pauseBypass()));
  }

  /** It is all another process's, but for the connections that are open. Packets wait in the devices until it reads them. Answers with what it has to know. */
  pause(): readonly HandedState[] {
    this.#env.ownership.isOurs = false;
    return this.#env.running().flatMap((tun) => tun.pause());
  }

  /** The other process serves. Logs what fails: what stays of nftables goes with this process. */
  async leave(): Promise<void> {
    for (const tun of this.#env.running())
      await tun.leave().catch((error: unknown) => this.#env.log.warning(messageOf(error)));
  }

  /** There is no other process: everything goes on here. */
  resume(): void {
    this.#env.ownership.isOurs = true;
    for (const tun of this.#env.running()) tun.activate();
  }
}
