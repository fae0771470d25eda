/**
 * The accepting part of a worker: accepts connections, parses the plain handshake, sends the request to the main
 * thread, and dials. The connection is then relayed in the same slot.
 */
import { performance } from "node:perf_hooks";
import type { AcceptCalls } from "#platform/linux/accept-calls.ts";
import { PendingLimiter, type PendingBounds } from "#net/listen/pending-limiter.ts";
import { isWildcard, SOCKADDR_BYTES, sourceOf } from "#platform/linux/sockaddr.ts";
import { EAGAIN, EINTR } from "#platform/linux/relay-calls.ts";
import { CLIENT } from "#dataplane/workers/shared/sides.ts";
import { PendingConnection } from "./pending-connection.ts";
import { DRAINS, OPEN, type AcceptMemory } from "#dataplane/workers/shared/accept-memory.ts";
import { DeadlineList } from "#lib/deadline-list.ts";
import type { PendingOwner } from "./pending-owner.ts";
import { type AcceptorHost, type PendingTask } from "./pending-task.ts";
import { HANDSHAKES } from "#dataplane/workers/shared/handshakes.ts";
import {
  CAPACITY,
  FIRST_ACCEPTED_SLOT,
  UNLISTENED,
  type RelayMemory,
} from "#dataplane/workers/shared/relay-memory.ts";
import { TlsHandshake, OBJECT_BYTES } from "./tls-handshake.ts";
import type { ClientBytes } from "./client-bytes.ts";
import { Decider } from "./decider.ts";
import { HeapTrimmer } from "./heap-trimmer.ts";
import { KeptSessions } from "./kept-sessions.ts";
import { NodeSessions } from "./node-sessions.ts";
import { RealityClients } from "./reality-clients.ts";
import { RequestSlots } from "./request-slots.ts";
import { TlsAcceptedQueue } from "./tls-accepted-queue.ts";
import { wholeSeconds } from "#dataplane/workers/shared/whole-seconds.ts";
import { VersionWord } from "#dataplane/workers/shared/decision-data.ts";
import { PENDING_BOUNDS } from "#dataplane/workers/shared/worker-data.ts";
import { int32At, itemAt } from "#lib/at.ts";

/** In epoll data, with the listener's number: no slot is as large. */
export const LISTENER_DATA = 0x4000_0000;

/** Of one listener in one turn, before others have theirs. */
const ACCEPTS = 4;
/** Of a listening socket; no system queues more (somaxconn). */
const MOST_QUEUED = 4096;
const HANDSHAKE_MS = 30_000;
/** The same for those whose first bytes are the main thread's: servers that are to look like nothing are silent for so long. */
const FIRST_BYTES_MS = 60_000;
/** The same for a request over HTTP/1.1 in front of these. */
const HEAD_MS = 10_000;
/** Memory of a client that has only connected, in the program and in the kernel; for TLS see tls-handshake.ts. */
const CONNECTED_BYTES = 2 * 1024;
/** How precise deadlines are. */
const TICK_MS = 50;
/** Without descriptors nothing is accepted for so long. */
const PAUSE_MS = 100;

const ECONNABORTED = -103;

export class Acceptor implements PendingOwner {
  readonly calls: AcceptCalls;
  readonly table: RelayMemory;
  readonly shared: AcceptMemory;
  readonly host: AcceptorHost;
  readonly decider: Decider;
  readonly tlsAccepted = new TlsAcceptedQueue();
  readonly sessions = new NodeSessions(this);
  readonly kept = new KeptSessions(this);
  readonly #reality = new RealityClients(this);
  readonly #free: number[] = [];
  /** Of these the kernel's present batch of events may still have some. */
  readonly #freed: number[] = [];
  readonly #requestSlots = new RequestSlots<PendingConnection>();
  readonly #pending = new DeadlineList<PendingTask>();
  readonly #silent = new DeadlineList<PendingTask>();
  readonly #requesting = new DeadlineList<PendingTask>();
  readonly #dialling = new DeadlineList<PendingTask>();
  readonly #listening = new Set<number>();
  readonly #names: Uint8Array[] = [];
  /** As the shared memory has them. */
  readonly #upgradePaths: string[] = [];
  /** Those that are bound to one address, which is that of all their clients' connections on this side, too. */
  readonly #bound = new Set<number>();
  readonly #paused = new Set<number>();
  readonly #limiter: PendingLimiter;
  readonly #trimmer = new HeapTrimmer();
  #resumesAtMs = 0;
  #tickAtMs = 0;

  constructor(
    calls: AcceptCalls,
    table: RelayMemory,
    shared: AcceptMemory,
    host: AcceptorHost,
    bounds: PendingBounds = PENDING_BOUNDS,
    decider: Decider = new Decider(shared, host, new VersionWord(), null),
  ) {
    this.calls = calls;
    this.#limiter = new PendingLimiter(bounds);
    this.table = table;
    this.shared = shared;
    this.host = host;
    this.decider = decider;
  }

  listen(listener: number): void {
    this.#listening.add(listener);
    if (this.#handshakeOf(listener) === "reality") this.#reality.listen(listener, this.host.takeRules());
    const { address } = this.calls;
    const isKnown = this.calls.localName(int32At(this.shared.listeners, listener)) >= 0;
    this.#upgradePaths[listener] = this.shared.upgradePath(listener);
    this.#names[listener] = isKnown ? address.slice() : new Uint8Array(SOCKADDR_BYTES);
    const isBound = isKnown && !isWildcard(address) && this.#handshakeOf(listener) !== "transparent";
    if (isBound) this.#bound.add(listener);
    else this.#bound.delete(listener);
    this.#watchListener(listener);
  }

  #watchListener(listener: number): void {
    const fd = int32At(this.shared.listeners, listener);
    if (this.calls.watchListener(this.host.epoll, fd, LISTENER_DATA + listener) < 0)
      this.#pauseAccept(listener);
  }

  /** Clients in a handshake are handed over; after the event of it none will come any more. */
  unlisten(listener: number): void {
    if (!this.#listening.delete(listener)) return;
    this.#paused.delete(listener);
    this.calls.unwatch(this.host.epoll, int32At(this.shared.listeners, listener));
    if (Atomics.load(this.shared.states, listener) === DRAINS) this.#drain(listener);
    for (const line of [this.#pending, this.#silent, this.#requesting])
      line.forEach((one) => {
        if (one.listener === listener) one.handOver();
      });
    // Behind that event no request may be sent.
    this.#dialling.forEach((one) => {
      const asks = one instanceof PendingConnection && this.decider.wayOf(one.slot) !== null;
      if (asks && one.listener === listener) one.handBack();
    });
    this.#requestSlots.forEachWaiting((one) => {
      if (one.listener === listener) one.handOver();
    });
    if (!this.#reality.unlisten(listener)) this.host.report(listener, UNLISTENED);
  }

  /** Accepts what the kernel has queued by now, and not what a flood keeps queueing. */
  #drain(listener: number): void {
    for (let left = MOST_QUEUED; left > 0 && this.#acceptOne(listener); left--);
  }

  /** The kernel has connections for it. */
  accept(listener: number): void {
    for (let count = 0; count < ACCEPTS; count++) if (!this.#acceptOne(listener)) return;
  }

  #acceptOne(listener: number): boolean {
    const state = Atomics.load(this.shared.states, listener);
    if (state !== OPEN && state !== DRAINS) return false; // the queue has another owner already
    if (!this.#hasSlot) return this.#pauseAccept(listener);
    const fd = this.calls.accept(int32At(this.shared.listeners, listener));
    if (fd < 0) return fd === ECONNABORTED || fd === EINTR || (fd !== EAGAIN && this.#pauseAccept(listener));
    this.#admit(fd, listener);
    return true;
  }

  get #hasSlot(): boolean {
    return this.#free.length > 0 || FIRST_ACCEPTED_SLOT + this.table.acceptedSlots < CAPACITY;
  }

  /** For what is no client. */
  takeSlot(): number {
    return this.#hasSlot ? this.#newSlot() : -1;
  }

  #newSlot(): number {
    const slot = this.#free.pop() ?? FIRST_ACCEPTED_SLOT + this.table.acceptedSlots++;
    const { descriptors, halfClosed, counts, kinds, messageStates: messages } = this.table;
    descriptors[slot * 2] = descriptors[slot * 2 + 1] = -1;
    halfClosed[slot] = 0;
    counts[slot * 2] = counts[slot * 2 + 1] = 0;
    kinds[slot * 2] = kinds[slot * 2 + 1] = 0;
    messages[slot * 2] = messages[slot * 2 + 1] = 0;
    return slot;
  }

  #admit(fd: number, listener: number): void {
    const slot = this.#newSlot();
    this.table.descriptors[slot * 2] = fd;
    this.shared.sources.set(this.calls.address, slot * SOCKADDR_BYTES);
    const one = this.#newTask(fd, slot, listener);
    this.host.put(slot, one);
    this.host.atSeam?.("admitted");
    if (!this.host.watch(slot, fd, CLIENT)) return one.end(true);
    if (one.begin()) return;
    const source = sourceOf(this.shared.sources, slot * SOCKADDR_BYTES);
    one.member = this.#limiter.enter(source, CONNECTED_BYTES, () => one.end(false));
  }

  /** It holds so much more. */
  grew({ member }: PendingTask, bytes: number): void {
    if (member !== null) this.#limiter.grow(member, bytes);
  }

  #handshakeOf(listener: number): (typeof HANDSHAKES)[number] {
    return HANDSHAKES[int32At(this.shared.handshakes, listener)] ?? "mixed";
  }

  #newTask(fd: number, slot: number, listener: number): PendingTask {
    const handshake = this.#handshakeOf(listener);
    if (handshake === "reality") return this.#reality.newTask({ slot, listener, fd });
    const isTls = handshake === "tls" || handshake === "tls-first-bytes";
    const client = { slot, listener, fd };
    const one = isTls
      ? new TlsHandshake(this, client, handshake !== "tls")
      : new PendingConnection(this, client, handshake, this.#upgradePath(listener));
    if (handshake === "first-bytes") this.#awaitFirst(one);
    else this.#await(one, this.#pending, HANDSHAKE_MS);
    return one;
  }

  #upgradePath(listener: number): string {
    return itemAt(this.#upgradePaths, listener);
  }

  #awaitFirst(one: PendingTask): void {
    if (this.#upgradePath(one.listener) === "") this.#await(one, this.#silent, FIRST_BYTES_MS);
    else this.#await(one, this.#requesting, HEAD_MS);
  }

  #await(one: PendingTask, line: DeadlineList<PendingTask>, ms: number): void {
    one.deadlineMs = this.#roughNowMs() + ms;
    line.join(one);
  }

  onSwitched(one: PendingTask): void {
    one.line?.leave(one);
    this.#await(one, this.#silent, FIRST_BYTES_MS);
  }

  /** As of one that was just accepted. */
  showFirst(task: PendingTask & { readonly fd: number }, bytes: ClientBytes): void {
    this.onGone(task);
    const one = new PendingConnection(this, task, "first-bytes", this.#upgradePath(task.listener), bytes);
    this.host.put(one.slot, one);
    if (!this.#listening.has(one.listener)) return one.handOver();
    this.#awaitFirst(one);
    const source = sourceOf(this.shared.sources, one.slot * SOCKADDR_BYTES);
    one.member = this.#limiter.enter(source, CONNECTED_BYTES + OBJECT_BYTES, () => one.end(false));
    one.readNow();
  }

  giveBack(task: PendingTask & { readonly fd: number }): void {
    this.onGone(task);
    const one = new PendingConnection(this, task, "first-bytes", "");
    this.host.put(one.slot, one);
    one.handOver();
  }

  /** Nothing is accepted of it for a moment. */
  #pauseAccept(listener: number): false {
    if (!this.#listening.has(listener)) return false; // it is drained for the last time
    this.calls.unwatch(this.host.epoll, int32At(this.shared.listeners, listener));
    this.#paused.add(listener);
    this.#resumesAtMs = performance.now() + PAUSE_MS;
    return false;
  }

  /** Good enough for deadlines. */
  #roughNowMs(): number {
    return this.#tickAtMs === 0 ? (this.#tickAtMs = performance.now()) : this.#tickAtMs;
  }

  // For pending connections.

  /** The listening side's own address for a client; to be used at once. */
  localOf(listener: number, fd: number): Uint8Array {
    if (this.#bound.has(listener)) return this.nameOf(listener);
    this.calls.localName(fd);
    return this.calls.address;
  }

  nameOf(listener: number): Uint8Array {
    return itemAt(this.#names, listener);
  }

  /** The main thread knows it from now on, and it may stay for long. */
  onJoined(slot: number): void {
    const fd = int32At(this.table.descriptors, slot * 2 + 1);
    const probes = this.decider.wayOf(slot)?.probes ?? null;
    if (probes !== null && fd >= 0)
      this.calls.keepAlive(fd, wholeSeconds(probes.idleMs), wholeSeconds(probes.intervalMs));
  }

  /** -1: none is free now; `askAgain` is called when one is. */
  takeRequestSlot(one: PendingConnection): number {
    return this.#requestSlots.take(one);
  }

  freeRequestSlot(index: number): void {
    this.#requestSlots.free(index);
  }

  /** The main thread decides about it from now on. */
  onAsked(one: PendingConnection): void {
    one.line?.leave(one);
    this.#left(one);
    this.#requestSlots.leave(one);
  }

  onDialling(one: PendingConnection, timeoutMs: number): void {
    one.deadlineMs = performance.now() + timeoutMs;
    this.#dialling.join(one);
  }

  onDialled(one: PendingConnection): void {
    this.#dialling.leave(one);
  }

  /** For a client that was never reported to the main thread, or that it has taken. */
  freeSlot(slot: number): void {
    this.#freed.push(slot);
  }

  /** Nothing of the slot is open any more. True: the main thread knows of it, and is to be told. */
  onClosed(slot: number): boolean {
    const account = this.decider.wayOf(slot) === null ? "joined" : this.decider.end(slot);
    if (account === "unknown") this.freeSlot(slot);
    return account === "joined";
  }

  #left({ member }: PendingTask): void {
    if (member !== null) this.#limiter.leave(member);
  }

  onGone(one: PendingTask): void {
    one.line?.leave(one);
    this.#left(one);
    if (one instanceof PendingConnection) this.#requestSlots.leave(one);
  }

  /** Once a turn, behind all events: looks after deadlines. How long the thread may sleep, in ms. */
  tick(longestMs: number): number {
    while (this.#freed.length > 0) this.#free.push(this.#freed.pop() as number);
    this.#trimmer.tick(this.#limiter.takeSettled());
    const waiting = this.#pending.size + this.#silent.size + this.#requesting.size;
    const attended = this.#dialling.size + this.#paused.size + this.#reality.size;
    if (waiting + attended === 0) {
      this.#tickAtMs = 0;
      return longestMs;
    }
    const nowMs = performance.now();
    if (nowMs - this.#tickAtMs >= TICK_MS) {
      this.#tickAtMs = nowMs;
      this.#expire(nowMs);
    }
    return attended > 0 ? TICK_MS : Math.min(longestMs, 1_000);
  }

  #expire(nowMs: number): void {
    this.#dialling.forEach((one) => {
      if (one.deadlineMs <= nowMs) one.timedOut();
    });
    this.#reality.tick(nowMs);
    expire(this.#pending, nowMs);
    expire(this.#silent, nowMs);
    expire(this.#requesting, nowMs);
    if (this.#paused.size === 0 || nowMs < this.#resumesAtMs) return;
    const paused = [...this.#paused];
    this.#paused.clear();
    for (const listener of paused) this.#watchListener(listener);
  }
}

/** The first ones are the oldest. */
function expire(line: DeadlineList<PendingTask>, nowMs: number): void {
  for (let { first } = line; first !== null && first.deadlineMs <= nowMs; { first } = line) first.timedOut();
}
