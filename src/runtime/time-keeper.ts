/** Asks the time server of the section `ntp` now and then, for protocols that refuse a peer with another time. */
import type { Config } from "#config/config.ts";
import { ABORTED, messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { Dialer } from "#core/outbound.ts";
import { toDestination } from "#net/address/ip.ts";
import type { NetworkClock } from "#net/clock/network-clock.ts";
import { askOffset } from "#net/clock/ntp.ts";

export interface TimeKeeperEnv {
  readonly options: Config["ntp"];
  /** Reaches the server. */
  readonly dialer: Dialer;
  readonly clock: NetworkClock;
  readonly log: Log;
}

const MINUTE_MS = 60_000;
const TIMEOUT_MS = 5_000;
/** After a failure. */
const RETRY_MS = 60_000;
const LOOK_MS = 10_000;

export class TimeKeeper implements Disposable {
  readonly #env: TimeKeeperEnv;
  readonly #stop = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #retryAtMs = 0;
  #asking = false;

  constructor(env: TimeKeeperEnv) {
    this.#env = env;
  }

  /** Asks at once, where the configuration wants it at all and nothing is known. */
  activate(): void {
    const { options, clock } = this.#env;
    if (!options.enable) return clock.reset();
    this.#timer = setInterval(() => this.#look(), LOOK_MS).unref();
    this.#look();
  }

  /** What the configuration before has learnt is not asked for again. */
  #look(): void {
    const { clock, options } = this.#env;
    clock.forgetIfJumped();
    const { correctedAtMs } = clock;
    const dueAtMs = correctedAtMs === null ? 0 : correctedAtMs + options.interval * MINUTE_MS;
    if (!this.#asking && performance.now() >= Math.max(dueAtMs, this.#retryAtMs)) void this.#ask();
  }

  async #ask(): Promise<void> {
    const { options, dialer, clock, log } = this.#env;
    const server = toDestination(options.server, options.port);
    const signal = AbortSignal.any([this.#stop.signal, AbortSignal.timeout(TIMEOUT_MS)]);
    this.#asking = true;
    try {
      await using flow = await dialer.associate(server, { signal, metadata: null });
      const offsetMs = await askOffset(flow, server, signal);
      if (this.#stop.signal.aborted) return;
      clock.correct(offsetMs);
      log.info(() => `ntp: the system's clock is ${behind(offsetMs)}`);
    } catch (error) {
      if (this.#stop.signal.aborted) return;
      this.#retryAtMs = performance.now() + RETRY_MS;
      log.warning(`ntp: ${options.server}: ${messageOf(error)}`);
    } finally {
      this.#asking = false;
    }
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#stop.abort(ABORTED);
  }
}

function behind(offsetMs: number): string {
  const seconds = (Math.abs(offsetMs) / 1000).toFixed(3);
  return `${seconds} s ${offsetMs < 0 ? "ahead" : "behind"}`;
}
