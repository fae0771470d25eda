/**
 * The accepting part of a worker: accepts connections, parses the plain handshake, sends the request to the main
 * thread, and dials. The connection is then relayed in the same slot.
 */
import { performance } from "node:perf_hooks";
import type { AcceptCalls } from "#platform/linux/accept-calls.ts";
import { PendingLimiter, type PendingBounds } from "#net/listen/pending-limiter.ts";
import { SOCKADDR_BYTES, sourceOf } from "#platform/linux/sockaddr.ts";
import type { AcceptMemory } from "#dataplane/workers/shared/accept-memory.ts";
import { VersionWord } from "#dataplane/workers/shared/decision-data.ts";
import type { RelayMemory } from "#dataplane/workers/shared/relay-memory.ts";
import { UNLISTENED } from "#dataplane/workers/shared/opcodes.ts";
import { CLIENT } from "#dataplane/workers/shared/sides.ts";
import { wholeSeconds } from "#dataplane/workers/shared/whole-seconds.ts";
import { PENDING_BOUNDS } from "#dataplane/workers/shared/worker-data.ts";
import { int32At } from "#lib/at.ts";
import { AcceptedSlots } from "./accepted-slots.ts";
import type { ClientBytes } from "./client-bytes.ts";
import { ClientDeadlines, TICK_MS } from "./client-deadlines.ts";
import { Decider } from "./decider.ts";
import { HeapTrimmer } from "./heap-trimmer.ts";
import { KeptSessions } from "./kept-sessions.ts";
import { Listeners, NO_MORE } from "./listeners.ts";
import { NodeSessions } from "./node-sessions.ts";
import { PendingConnection } from "./pending-connection.ts";
import type { PendingOwner } from "./pending-owner.ts";
import type { AcceptorHost, PendingTask } from "./pending-task.ts";
import { RealityClients } from "./reality-clients.ts";
import { RequestSlots } from "./request-slots.ts";
import { TlsAcceptedQueue } from "./tls-accepted-queue.ts";
import { TlsHandshake, OBJECT_BYTES } from "./tls-handshake.ts";

/** Of one listener in one turn, before others have theirs. */
const ACCEPTS = 4;
/** Of a listening socket; no system queues more (somaxconn). */
const MOST_QUEUED = 4096;
/** Memory of a client that has only connected, in the program and in the kernel; for TLS see tls-handshake.ts. */
const CONNECTED_BYTES = 2 * 1024;
/** While clients are waited for that have long deadlines. */
const LONGEST_SLEEP_MS = 1_000;

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
  readonly #listeners: Listeners;
  readonly #slots: AcceptedSlots;
  readonly #requestSlots = new RequestSlots<PendingConnection>();
  readonly #deadlines = new ClientDeadlines();
  readonly #limiter: PendingLimiter;
  readonly #trimmer = new HeapTrimmer();

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
    this.#listeners = new Listeners(calls, shared, host.epoll);
    this.#slots = new AcceptedSlots(table);
  }

  listen(listener: number): void {
    if (this.#listeners.handshakeOf(listener) === "reality")
      this.#reality.listen(listener, this.host.takeRules());
    this.#listeners.open(listener);
  }

  /** Clients in a handshake are handed over; after the event of it none will come any more. */
  unlisten(listener: number): void {
    if (!this.#listeners.close(listener)) return;
    if (this.#listeners.drains(listener)) this.#drain(listener);
    this.#deadlines.forEachReading((one) => {
      if (one.listener === listener) one.handOver();
    });
    // Behind that event no request may be sent.
    this.#deadlines.forEachDialling((one) => {
      const asks = one instanceof PendingConnection && this.decider.slots.wayOf(one.slot) !== null;
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

  /** False: there is none, or none can be taken. */
  #acceptOne(listener: number): boolean {
    if (!this.#listeners.mayAccept(listener)) return false;
    if (!this.#slots.hasRoom) {
      this.#listeners.pause(listener);
      return false;
    }
    const fd = this.#listeners.accept(listener);
    if (fd >= 0) this.#admit(fd, listener);
    return fd !== NO_MORE;
  }

  #admit(fd: number, listener: number): void {
    const slot = this.#slots.take();
    this.table.descriptors[slot * 2] = fd;
    this.shared.sources.set(this.calls.address, slot * SOCKADDR_BYTES);
    const one = this.#newTask(fd, slot, listener);
    this.host.put(slot, one);
    this.host.atSeam?.("admitted");
    if (!this.host.watch(slot, fd, CLIENT)) return one.end(true);
    if (!one.begin()) this.#enter(one, CONNECTED_BYTES);
  }

  #newTask(fd: number, slot: number, listener: number): PendingTask {
    const client = { slot, listener, fd };
    const handshake = this.#listeners.handshakeOf(listener);
    if (handshake === "reality") return this.#reality.newTask(client);
    const isTls = handshake === "tls" || handshake === "tls-first-bytes";
    const path = this.#listeners.upgradePath(listener);
    const one = isTls
      ? new TlsHandshake(this, client, handshake !== "tls")
      : new PendingConnection(this, client, handshake, path);
    if (handshake === "first-bytes") this.#deadlines.awaitFirstBytes(one, path !== "");
    else this.#deadlines.awaitHandshake(one);
    return one;
  }

  /** Until it has authenticated, it may have to give way to others; it holds so much memory. */
  #enter(one: PendingTask, bytes: number): void {
    const source = sourceOf(this.shared.sources, one.slot * SOCKADDR_BYTES);
    one.member = this.#limiter.enter(source, bytes, () => one.end(false));
  }

  /** The main thread knows it from now on, and it may stay for long. */
  onJoined(slot: number): void {
    const fd = int32At(this.table.descriptors, slot * 2 + 1);
    const probes = this.decider.slots.wayOf(slot)?.probes ?? null;
    if (probes !== null && fd >= 0)
      this.calls.keepAlive(fd, wholeSeconds(probes.idleMs), wholeSeconds(probes.intervalMs));
  }

  /** Nothing of the slot is open any more. True: the main thread knows of it, and is to be told. */
  onClosed(slot: number): boolean {
    const account = this.decider.slots.wayOf(slot) === null ? "joined" : this.decider.slots.end(slot);
    if (account === "unknown") this.freeSlot(slot);
    return account === "joined";
  }

  /** Once a turn, behind all events: looks after deadlines. How long the thread may sleep, in ms. */
  tick(longestMs: number): number {
    this.#slots.endTurn();
    this.#trimmer.tick(this.#limiter.takeSettled());
    const attended = this.#deadlines.dialling + this.#listeners.paused + this.#reality.size;
    if (this.#deadlines.reading + attended === 0) {
      this.#deadlines.rest();
      return longestMs;
    }
    const nowMs = performance.now();
    if (this.#deadlines.takeTick(nowMs)) {
      this.#deadlines.expire(nowMs);
      this.#reality.tick(nowMs);
      this.#listeners.resume(nowMs);
    }
    return attended > 0 ? TICK_MS : Math.min(longestMs, LONGEST_SLEEP_MS);
  }

  // For pending connections.

  grew({ member }: PendingTask, bytes: number): void {
    if (member !== null) this.#limiter.grow(member, bytes);
  }

  onSwitched(one: PendingTask): void {
    this.#deadlines.awaitFirstBytes(one, false);
  }

  /** As of one that was just accepted. The kernel says an end once. */
  showFirst(task: PendingTask & { readonly fd: number }, bytes: ClientBytes, events: number): void {
    this.onGone(task);
    const path = this.#listeners.upgradePath(task.listener);
    const one = new PendingConnection(this, task, "first-bytes", path, bytes);
    one.onEvents(CLIENT, events);
    this.host.put(one.slot, one);
    if (!this.#listeners.isOpen(one.listener)) return one.handOver();
    this.#deadlines.awaitFirstBytes(one, path !== "");
    this.#enter(one, CONNECTED_BYTES + OBJECT_BYTES);
    one.readNow();
  }

  giveBack(task: PendingTask & { readonly fd: number }): void {
    this.onGone(task);
    const one = new PendingConnection(this, task, "first-bytes", "");
    this.host.put(one.slot, one);
    one.handOver();
  }

  localOf(listener: number, fd: number): Uint8Array {
    return this.#listeners.localOf(listener, fd);
  }

  nameOf(listener: number): Uint8Array {
    return this.#listeners.nameOf(listener);
  }

  takeRequestSlot(one: PendingConnection): number {
    return this.#requestSlots.take(one);
  }

  freeRequestSlot(index: number): void {
    this.#requestSlots.free(index);
  }

  takeSlot(): number {
    return this.#slots.hasRoom ? this.#slots.take() : -1;
  }

  freeSlot(slot: number): void {
    this.#slots.free(slot);
  }

  onAsked(one: PendingConnection): void {
    one.line?.leave(one);
    this.#leave(one);
    this.#requestSlots.leave(one);
  }

  onDialling(one: PendingConnection, timeoutMs: number): void {
    this.#deadlines.awaitDial(one, timeoutMs);
  }

  onDialled(one: PendingConnection): void {
    this.#deadlines.onDialled(one);
  }

  onGone(one: PendingTask): void {
    one.line?.leave(one);
    this.#leave(one);
    if (one instanceof PendingConnection) this.#requestSlots.leave(one);
  }

  #leave({ member }: PendingTask): void {
    if (member !== null) this.#limiter.leave(member);
  }
}
