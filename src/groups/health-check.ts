import { ABORTED, type DialError } from "#core/errors.ts";
import type { TestEnv } from "#core/group.ts";
import type { Outbound } from "#core/outbound.ts";

/** Tests running at a time; further ones are queued. */
const PARALLEL = 10;

/** Keeps the delays of a group's members fresh: periodically, and at once when dials fail. */
export class HealthCheck implements AsyncDisposable {
  readonly #env: TestEnv;
  readonly #stop = new AbortController();
  readonly #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | null = null;
  #used = false;
  /** The members as they were when the last test began; null: there was none. */
  #tested: readonly Outbound[] | null = null;
  #failures = 0;
  #firstFailureAtMs = 0;

  constructor(env: TestEnv) {
    this.#env = env;
    const { intervalSeconds, lazy } = env.settings;
    if (intervalSeconds > 0) {
      this.#timer = setInterval(() => this.#tick(), intervalSeconds * 1000);
      this.#timer.unref();
    }
    if (!lazy) void this.run();
  }

  /** To be called when a session uses the group. The first use of its members starts a test, so that the choice is soon a good one. */
  touch(): void {
    this.#used = true;
    if (this.#env.settings.intervalSeconds > 0 && this.#tested !== this.#env.members()) void this.run();
  }

  /** A refused connection says enough at once; other failures have to come in a row within the test's time-out. */
  dialled(failure: DialError | null): void {
    const { maxFailedTimes, timeoutMs } = this.#env.settings;
    if (failure === null) {
      this.#failures = 0;
      return;
    }
    const nowMs = performance.now();
    if (this.#failures === 0 || nowMs - this.#firstFailureAtMs > timeoutMs) {
      this.#failures = 0;
      this.#firstFailureAtMs = nowMs;
    }
    this.#failures++;
    if (failure.reason !== "refused" && this.#failures < maxFailedTimes) return;
    this.#failures = 0;
    void this.run();
  }

  get isRunning(): boolean {
    return this.#running !== null;
  }

  /** Tests every member once; a call while tests run joins them. Never rejects: a member that fails is a result. */
  run(): Promise<void> {
    this.#running ??= this.#testAll().finally(() => {
      this.#running = null;
      this.#env.health.delays.settled();
    });
    return this.#running;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    this.#stop.abort(ABORTED);
    await this.#running;
  }

  #tick(): void {
    if (this.#env.settings.lazy && !this.#used) return;
    this.#used = false;
    void this.run();
  }

  async #testAll(): Promise<void> {
    this.#tested = this.#env.members();
    const waiting = [...this.#tested];
    const work = async (): Promise<void> => {
      for (let member = waiting.shift(); member !== undefined; member = waiting.shift())
        await this.#test(member);
    };
    await Promise.all(Array.from({ length: PARALLEL }, work));
  }

  async #test(member: Outbound): Promise<void> {
    const { health, settings } = this.#env;
    if (this.#stop.signal.aborted) return;
    await health.test(member, settings, this.#stop.signal).catch(() => {}); // a member that fails is a result
  }
}
