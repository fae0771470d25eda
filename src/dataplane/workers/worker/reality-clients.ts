import type { RealityRules } from "#core/reality-rules.ts";
import { DeadlineList } from "#lib/deadline-list.ts";
import { UNLISTENED } from "#dataplane/workers/shared/opcodes.ts";
import type { PendingOwner, RequestingTask } from "./pending-owner.ts";
import type { PendingTask } from "./pending-task.ts";
import { RealityHandshake } from "./reality-handshake.ts";
import { RealityListener } from "./reality-listener.ts";

/** The clients of REALITY listeners that one thread shakes hands with. */
export class RealityClients {
  readonly #owner: PendingOwner;
  readonly #listeners = new Map<number, RealityListener | null>();
  readonly #line = new DeadlineList<PendingTask>();
  /** Nothing is accepted of them any more, and some of theirs are not done. */
  readonly #leaving = new Set<number>();

  constructor(owner: PendingOwner) {
    this.#owner = owner;
  }

  get size(): number {
    return this.#line.size + this.#leaving.size;
  }

  /** `rules` null: its clients are the main thread's. */
  listen(listener: number, rules: RealityRules | null): void {
    this.#listeners.set(listener, rules && new RealityListener(rules));
  }

  /** Its deadlines are looked at until it is gone. */
  newTask(client: Pick<RequestingTask, "slot" | "listener" | "fd">): PendingTask {
    const one = new RealityHandshake(this.#owner, client, this.#listeners.get(client.listener) ?? null);
    this.#line.join(one);
    return one;
  }

  /** False: it is none of these. True: that nothing comes of it any more is said when that is so. */
  unlisten(listener: number): boolean {
    if (!this.#listeners.delete(listener)) return false;
    this.#leaving.add(listener);
    this.#line.forEach((one) => {
      if (one instanceof RealityHandshake && one.listener === listener) one.stopListening();
    });
    this.#report();
    return true;
  }

  /** Once a turn, where there are any. */
  tick(nowMs: number): void {
    this.#line.forEach((one) => {
      if (one.deadlineMs <= nowMs) one.timedOut();
    });
    if (this.#leaving.size > 0) this.#report();
  }

  #report(): void {
    const open = new Set<number>();
    this.#line.forEach((one) => open.add(one.listener));
    for (const listener of this.#leaving) {
      if (open.has(listener)) continue;
      this.#leaving.delete(listener);
      this.#owner.host.report(listener, UNLISTENED);
    }
  }
}
