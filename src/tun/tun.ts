/**
 * A TUN inbound: it is whole when it exists, and packets are read from `activate` on. A device that another program
 * deletes is made anew. Disposing it ends the capture of traffic first.
 */
import type { Capture } from "#core/capture.ts";
import { messageOf } from "#core/errors.ts";
import type { HandedState, ListeningSocket } from "#net/listen/inherited-sockets.ts";
import { openParts, type Parts, type PartsEnv } from "./parts.ts";
import type { TunSettings } from "./settings.ts";

export interface TunEnv extends PartsEnv {
  /** Until it is disposed nothing new passes by a TUN that is made anew; null: nothing is held. */
  readonly hold: (settings: TunSettings) => Promise<AsyncDisposable | null>;
}

/** A deleted device is made anew after this time; twice as long after each failure, up to the second value. */
const REBUILD_MS = 1_000;
const MOST_REBUILD_MS = 60_000;

export class Tun implements AsyncDisposable {
  readonly settings: TunSettings;
  readonly #env: TunEnv;
  #parts: Parts | null;
  #active = false;
  #closed = false;
  #rebuild: NodeJS.Timeout | null = null;
  #held: AsyncDisposable | null = null;
  #rebuilding: Promise<void> = Promise.resolve();
  #updating: Promise<void> = Promise.resolve();

  private constructor(settings: TunSettings, env: TunEnv, parts: Parts) {
    this.settings = settings;
    this.#env = env;
    this.#parts = parts;
  }

  /** Throws `ConfigError` naming the key, with nothing left open. */
  static async open(settings: TunSettings, env: TunEnv): Promise<Tun> {
    if (settings.stack !== "system")
      env.log.info(`[TUN] stack ${settings.stack}: the system stack does its work`);
    const parts = await openParts(settings, env);
    return new Tun(settings, env, parts);
  }

  /** Empty while the device is being made anew. */
  get device(): string {
    return this.#parts?.device.name ?? "";
  }

  /** Null while the device is being made anew. */
  get capture(): Capture | null {
    return this.#parts?.capture ?? null;
  }

  /** Flows that NAT remembers. */
  get natSize(): number {
    const stack = this.#parts?.stack;
    return (stack?.inet4?.nat.size ?? 0) + (stack?.inet6?.nat.size ?? 0);
  }

  activate(): void {
    this.#active = true;
    this.#parts?.activate(() => this.#onGone());
  }

  /** For another process of weir. Null while the device is being made anew. */
  handles(): readonly ListeningSocket[] | null {
    return this.#parts?.handles() ?? null;
  }

  /** What `activate` makes in the kernel is there. */
  async settled(): Promise<void> {
    await this.#parts?.settled();
  }

  /** Until `activate` nothing that was learnt makes the kernel forward. */
  async pauseBypass(): Promise<void> {
    await this.#parts?.pauseBypass();
  }

  /** Another process captures. */
  async leave(): Promise<void> {
    await this.#parts?.leave();
  }

  /** Nothing is read and accepted any more until `activate`; answers with what another process has to know of it. */
  pause(): readonly HandedState[] {
    return this.#parts?.pause() ?? [];
  }

  /** Rule providers have changed. Failures are logged: the sets stay as they were. */
  updateSets(): Promise<void> {
    const { routeSets, routeExcludeSets } = this.settings;
    if (routeSets === null && routeExcludeSets === null) return Promise.resolve();
    this.#updating = this.#updating.then(() => this.#updateSets());
    return this.#updating;
  }

  /** One after the other, so that the last one is the newest. */
  async #updateSets(): Promise<void> {
    const { settings } = this;
    try {
      await this.capture?.updateSets({
        route: this.#env.prefixesOf(settings.routeSets ?? []),
        routeExclude: this.#env.prefixesOf(settings.routeExcludeSets ?? []),
      });
    } catch (error) {
      this.#env.log.error(`[TUN] the route sets could not be renewed: ${messageOf(error)}`);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    if (this.#rebuild !== null) clearTimeout(this.#rebuild);
    await this.#rebuilding;
    await this.#release();
    const parts = this.#parts;
    this.#parts = null;
    await parts?.[Symbol.asyncDispose]();
  }

  #onGone(): void {
    if (this.#closed) return; // it is being closed with everything else
    const parts = this.#parts;
    this.#parts = null;
    this.#env.log.error(
      `[TUN] another program has deleted the device ${parts?.device.name}; it is made anew`,
    );
    this.#rebuilding = this.#leave(parts);
  }

  async #leave(parts: Parts | null): Promise<void> {
    this.#held = await this.#env.hold(this.settings);
    try {
      await parts?.[Symbol.asyncDispose]();
    } catch (error) {
      this.#env.log.error(`[TUN] removing what is left of the device: ${messageOf(error)}`);
    }
    this.#rebuildIn(REBUILD_MS);
  }

  #rebuildIn(delayMs: number): void {
    if (this.#closed) return;
    this.#rebuild = setTimeout(() => {
      this.#rebuilding = this.#openAgain(delayMs);
    }, delayMs);
  }

  async #openAgain(delayMs: number): Promise<void> {
    try {
      this.#parts = await openParts(this.settings, this.#env);
      if (this.#active) this.#parts.activate(() => this.#onGone());
      void this.updateSets(); // they may have changed since its capture began
    } catch (error) {
      this.#env.log.error(`[TUN] ${messageOf(error)}; trying again`);
      this.#rebuildIn(Math.min(delayMs * 2, MOST_REBUILD_MS));
    }
    await this.#release(); // also where it failed: without us traffic goes by itself
  }

  async #release(): Promise<void> {
    const held = this.#held;
    this.#held = null;
    await held?.[Symbol.asyncDispose]();
  }
}
