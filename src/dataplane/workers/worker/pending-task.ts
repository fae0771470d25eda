/** What a front has to do with: the loop around it, and the clients that it has accepted. */
import type { PendingEntry } from "#net/listen/pending-limiter.ts";
import type { Ssl } from "#platform/linux/ssl.ts";
import type { Task } from "./task.ts";
import type { DeadlineListItem } from "#lib/deadline-list.ts";
import type { AtSeam } from "#dataplane/workers/shared/seams.ts";

/** What the loop does for its front. */
export interface AcceptorHost {
  readonly epoll: number;
  /** Watches the descriptor from now on, as that of the client (0) or the remote (1). False: the kernel refused. */
  watch(slot: number, fd: number, side: 0 | 1): boolean;
  /** Another conversation in the slot, or none. */
  put(slot: number, conversation: Task | null): void;
  end(slot: number, isFault: boolean): void;
  report(slot: number, kind: number): void;
  /** The same of news that can wait for others a little. */
  reportLazily(slot: number, kind: number): void;
  /** Two sockets that are connected, as a conversation. */
  pair(slot: number): Task | null;
  /** The thread's; null: it cannot be had. */
  ssl(): Ssl | null;
  /** Of tests only. */
  readonly atSeam?: AtSeam | undefined;
}

/** A client from accept until the main thread decides about it. */
export interface PendingTask extends Task, DeadlineListItem<PendingTask> {
  readonly slot: number;
  readonly listener: number;
  deadlineMs: number;
  /** Among those who may still turn out to be nobody; null: it is not there yet. */
  member: PendingEntry | null;
  /** Once it is watched. True: it need not say anything. */
  begin(): boolean;
  timedOut(): void;
  /** The main thread serves it; only of one that it has not heard of. */
  handOver(): void;
  /** Of one that the main thread has not heard of. */
  end(isFault: boolean): void;
}
