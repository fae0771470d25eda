/** The parts around the acceptor: the loop, and the clients that it has accepted. */
import type { WireStart } from "#core/wire-state.ts";
import type { RealityRules } from "#core/reality-rules.ts";
import type { Ip } from "#core/session.ts";
import type { PendingEntry } from "#net/listen/pending-limiter.ts";
import type { Ssl } from "#platform/linux/ssl.ts";
import type { Task } from "./task.ts";
import type { DeadlineListItem } from "#lib/deadline-list.ts";
import type { BrowserTlsTable } from "#dataplane/workers/wire/browser-tls.ts";
import type { Wire, WireIo } from "#dataplane/workers/wire/wire.ts";
import type { OpenMessage } from "#dataplane/workers/wire/open-wire.ts";
import type { NodeTlsTable } from "#dataplane/workers/wire/node-tls.ts";
import type { WireMessage } from "#dataplane/workers/shared/wire-spec.ts";
import type { AtSeam } from "#dataplane/workers/shared/seams.ts";

/** Of client and remote. */
export type WireMessages = readonly [OpenMessage, OpenMessage];

/** The services of the loop for its acceptor. */
export interface AcceptorHost {
  readonly epoll: number;
  readonly io: WireIo;
  /** Watches the descriptor from now on, as that of the client (0) or the remote (1). False: the kernel refused. */
  watch(slot: number, fd: number, side: 0 | 1): boolean;
  /** How many there are that accept clients. */
  readonly threads: number;
  /** Another task in the slot, or none. */
  put(slot: number, task: Task | null): void;
  end(slot: number, isFault: boolean): void;
  /** A turn for the task of the slot, as of a wire without a socket at that index; `events` are epoll(7) bits, none of them by default. */
  wake(index: number, events?: number): void;
  report(slot: number, kind: number): void;
  /** The same for an event that can wait a little. */
  reportLazily(slot: number, kind: number): void;
  /** To the main thread, in front of the event that has it read. */
  post(message: unknown): void;
  /** Of a listener, come with the command to listen; null: none have. */
  takeRules(): RealityRules | null;
  /** As `AcceptCalls` has it. */
  mayBeOwn(ip: Ip): boolean;
  /** A wire that is begun on this thread, in place of one that comes with a command. */
  begin(index: number, wire: WireStart): WireMessage;
  /** Its wire; null: it cannot be had. */
  open(index: number, message: OpenMessage): Wire | null;
  /** Two sockets that are connected, as a relay task. */
  pair(slot: number, messages: WireMessages): Task | null;
  /** The thread's; null: it cannot be had. */
  ssl(): Ssl | null;
  /** The thread's. */
  readonly nodes: NodeTlsTable;
  readonly browsers: BrowserTlsTable;
  /** Of tests only. */
  readonly atSeam?: AtSeam | undefined;
}

/** A client from accept until the main thread decides about it. */
export interface PendingTask extends Task, DeadlineListItem<PendingTask> {
  readonly slot: number;
  readonly listener: number;
  deadlineMs: number;
  /** Its entry among clients that have not authenticated yet; null: not entered. */
  member: PendingEntry | null;
  /** Once it is watched. True: it need not say anything. */
  begin(): boolean;
  timedOut(): void;
  /** The main thread serves the client; only for one that was not reported to it. */
  handOver(): void;
  /** Only for one that was not reported to the main thread. */
  end(isFault: boolean): void;
}
