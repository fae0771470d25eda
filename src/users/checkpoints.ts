/** When counters are written that no change has taken along. */
import type { Shared } from "./changes.ts";

/** Users encoded in one turn of the event loop: some milliseconds. */
const BATCH = 200;
/** How long the backup may lack counters; it never lacks a change. */
const BACKUP_MS = 5 * 60_000;

export class Checkpoints {
  readonly #shared: Shared;
  #backedUpAtMs: number;
  #isRunning = false;

  constructor(shared: Shared) {
    this.#shared = shared;
    this.#backedUpAtMs = shared.env.monotonicMs();
  }

  /** Writes counters that have moved, each listener's in its lane. Never rejects; does nothing while the last one runs. */
  async run(): Promise<void> {
    if (this.#isRunning) return;
    this.#isRunning = true;
    const { env, registry } = this.#shared;
    registry.expireHistories();
    const nowMs = env.monotonicMs();
    const backup = nowMs - this.#backedUpAtMs >= BACKUP_MS;
    try {
      const listeners = new Set([...registry.counters.changed].map(({ listener }) => listener));
      const all = await Promise.all([...listeners].map((name) => this.#save(name, backup)));
      if (backup && all.every(Boolean)) this.#backedUpAtMs = nowMs;
    } finally {
      this.#isRunning = false;
    }
  }

  /** Batch by batch, so that a change waits for one at most. False: not all could be written. */
  async #save(name: string, backup: boolean): Promise<boolean> {
    const { repository, queues, registry } = this.#shared;
    let left = registry.counters.changed.size;
    for (let saved = true; saved && left > 0; left -= BATCH)
      saved = await queues
        .on(name, () => {
          const own = [...registry.counters.changed].filter(({ listener }) => listener === name);
          return own.length === 0 || repository.save(own.slice(0, BATCH), { backup });
        })
        .catch(() => false); // too many wait in the lane: the next one tries again
    return left <= 0;
  }
}
