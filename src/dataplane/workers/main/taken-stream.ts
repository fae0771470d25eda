import { Socket } from "node:net";
import { descriptorOf, DETACHABLE, type Detachable } from "#core/handover.ts";
import type { DetachedState } from "#core/wire-state.ts";
import { RESET, TAKE } from "#dataplane/workers/shared/opcodes.ts";
import type { AcceptCalls } from "#platform/linux/accept-calls.ts";
import type { WorkerHandle } from "./worker-handle.ts";

const NOTHING: DetachedState = { numbers: [], unread: null };

/** A stream of a session that a worker reads: this end of what it is relayed to. */
class TakenStream extends Socket {
  [DETACHABLE](): Detachable | null {
    const isBusy = this.destroyed || this.writableEnded || this.writableLength > 0 || descriptorOf(this) < 0;
    return isBusy ? null : { kind: "plain", socket: this, detach: () => NOTHING };
  }
}

/** Has the worker relay a stream in that slot to this thread, which answers its client first; null: nothing is left of it. */
export function takeStream(thread: WorkerHandle, slot: number, calls: AcceptCalls): Socket | null {
  const ends = calls.pair();
  if (ends === null) {
    thread.command(slot, RESET);
    return null;
  }
  const [own, far] = ends;
  thread.table.limited[slot] = 0;
  thread.table.descriptors[slot * 2 + 1] = far;
  thread.command(slot, TAKE);
  return new TakenStream({ fd: own, allowHalfOpen: true });
}
