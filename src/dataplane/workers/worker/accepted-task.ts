import type { PendingEntry } from "#net/listen/pending-limiter.ts";
import type { DeadlineList } from "#lib/deadline-list.ts";
import type { PendingOwner, RequestingTask } from "./pending-owner.ts";
import type { PendingTask } from "./pending-task.ts";

/** What every client has from accept on, until it is relayed or is the main thread's. */
export class AcceptedTask {
  queued = false;
  readonly halfClosed = false;
  line: DeadlineList<PendingTask> | null = null;
  before: PendingTask | null = null;
  behind: PendingTask | null = null;
  deadlineMs = 0;
  member: PendingEntry | null = null;
  readonly acceptor: PendingOwner;
  readonly slot: number;
  readonly listener: number;
  readonly fd: number;

  constructor(
    acceptor: PendingOwner,
    { slot, listener, fd }: Pick<RequestingTask, "slot" | "listener" | "fd">,
  ) {
    this.acceptor = acceptor;
    this.slot = slot;
    this.listener = listener;
    this.fd = fd;
  }

  limit(): void {} // nothing of it is counted yet; what it becomes looks at the table

  grant(): void {} // it has asked for nothing
}
