import { EAGAIN, EINTR, FAULT, HANGUP, PEER_ENDED, READABLE } from "#platform/linux/relay-calls.ts";
import { alpnKind } from "#transport/reality/server/dest-board.ts";
import { ANSWER_TIMEOUT_MS, type Finished, Visit } from "#transport/reality/server/visit.ts";
import { tag } from "#dataplane/workers/shared/slot-tag.ts";
import { LEFT } from "#dataplane/workers/shared/opcodes.ts";
import { CLIENT, type Side } from "#dataplane/workers/shared/sides.ts";
import type { LeftClient } from "#dataplane/workers/shared/worker-data.ts";
import { AcceptedTask } from "./accepted-task.ts";
import { Outlet } from "./outlet.ts";
import type { PendingOwner, RequestingTask } from "./pending-owner.ts";
import type { PendingTask } from "./pending-task.ts";
import { RealityBytes } from "./reality-bytes.ts";
import type { RealityListener } from "./reality-listener.ts";
import { RemoteDial } from "./remote-dial.ts";
import { MORE, WAITS, type Outcome } from "./task.ts";

const OVER = PEER_ENDED | HANGUP | FAULT;
const SOMETHING = READABLE | OVER;
const READ_BYTES = 64 * 1024;
/** Of each end in one turn: who sends more than is understood shall not keep the thread. */
const MOST_READS = 4;
/** What our own engine takes of one that it has answered. */
const ENGINE_BYTES = 24 * 1024;
/** How long one may take that has begun, when its listener is one no more. */
const LEAVING_MS = 2_000;

/** What is known of a socket that is reported by edges. */
class Inlet {
  isReady = false;
  /** All that were told, epoll(7) bits. */
  events = 0;

  notice(events: number): void {
    this.events |= events;
    if ((events & SOMETHING) !== 0) this.isReady = true;
  }

  /** So much was read of it, of so much at most. */
  got(size: number, most: number): void {
    if (size === EAGAIN || (size > 0 && size < most && (this.events & OVER) === 0)) this.isReady = false;
  }
}

/** A client of a REALITY listener, and dest, from accept to the end of its handshake. */
export class RealityHandshake extends AcceptedTask implements PendingTask {
  readonly #keys: RealityListener | null;
  readonly #dest: RemoteDial | null;
  readonly #visit: Visit | null;
  readonly #toClient: Outlet;
  readonly #toDest: Outlet;
  readonly #ofClient = new Inlet();
  readonly #ofDest = new Inlet();
  #isConnected = false;
  #hasHeard = false;
  #isListened = true;
  #isGone = false;
  #finished: Finished | null = null;

  constructor(
    acceptor: PendingOwner,
    client: Pick<RequestingTask, "slot" | "listener" | "fd">,
    keys: RealityListener | null,
  ) {
    super(acceptor, client);
    const { calls } = acceptor;
    this.#keys = keys;
    const dial = keys?.dial() ?? null;
    this.#dest = dial && new RemoteDial(acceptor, this.slot, dial, { isDecided: false, under: undefined });
    this.#toClient = new Outlet(calls, () => this.fd);
    this.#toDest = new Outlet(calls, () => this.#dest?.descriptor ?? -1);
    this.#visit =
      keys &&
      new Visit(keys.answers, {
        toClient: (bytes) => this.#toClient.say(bytes),
        toDest: (bytes) => this.#toDest.say(bytes),
      });
    this.deadlineMs = performance.now() + (dial?.timeoutMs ?? 0);
  }

  /** Dest is dialled at once. */
  begin(): boolean {
    const dest = this.#dest;
    const { host } = this.acceptor;
    if (dest !== null && dest.start() === 0 && host.watch(this.slot, dest.descriptor, 1)) return false;
    this.giveBack();
    return true;
  }

  onEvents(side: Side, events: number): boolean {
    if (side === CLIENT) this.#ofClient.notice(events);
    else if (this.#dest !== null) {
      this.#dest.events |= events;
      this.#ofDest.notice(events);
    }
    return true;
  }

  run(): Outcome {
    const [dest, visit] = [this.#dest, this.#visit];
    if (dest === null || visit === null || (!this.#isConnected && !this.#connect(dest))) return WAITS;
    this.#toClient.flush();
    this.#toDest.flush();
    const hasMore = this.#read(visit, dest);
    if (!this.#isGone) this.#look(visit);
    return hasMore ? MORE : WAITS;
  }

  #connect(dest: RemoteDial): boolean {
    const result = dest.takeResult();
    if (result !== null && result !== 0) this.giveBack();
    if (result !== 0) return false;
    this.#isConnected = true;
    this.deadlineMs = Infinity; // how long a client may be silent is for dest to say
    this.acceptor.calls.noDelay(dest.descriptor);
    return true;
  }

  /** The client no further than dest has taken. True: there is more at once. */
  #read(visit: Visit, dest: RemoteDial): boolean {
    const isOpen = (): boolean => !this.#isGone && !visit.isOver;
    const hasClients = (): boolean => isOpen() && this.#ofClient.isReady && this.#toDest.waiting.length === 0;
    const hasDests = (): boolean => isOpen() && this.#ofDest.isReady && !visit.isFull;
    for (let reads = 0; reads < MOST_READS && (hasClients() || hasDests()); reads++) {
      if (hasClients()) this.#readClient(visit);
      if (hasDests()) this.#readDest(visit, dest);
    }
    return hasClients() || hasDests();
  }

  /** What comes behind the end of its handshake stays in the socket. */
  #readClient(visit: Visit): void {
    const { calls } = this.acceptor;
    const size = calls.look(this.fd);
    this.#ofClient.got(size, calls.bytes.length);
    if (size === EAGAIN || size === EINTR) return;
    if (size < 0) return this.end(true);
    if (size === 0) return visit.leave();
    this.#hasHeard = true;
    visit.fromClient(Buffer.from(calls.bytes.subarray(0, size)));
    if (visit.stage === "finished") this.#finished = visit.takeFinished();
    const unread = this.#finished?.connection.takeUnread().length ?? 0;
    calls.consume(this.fd, size - unread);
  }

  #readDest(visit: Visit, dest: RemoteDial): void {
    const { calls } = this.acceptor;
    const size = calls.receive(dest.descriptor, READ_BYTES);
    this.#ofDest.got(size, READ_BYTES);
    if (size === EAGAIN || size === EINTR) return;
    if (size < 0) return this.end(true);
    if (size === 0) return visit.leave();
    const before = visit.stage;
    visit.fromDest(Buffer.from(calls.buffer.subarray(0, size)));
    if (before === "waits" && visit.stage === "finishes") this.acceptor.grew(this, ENGINE_BYTES);
  }

  #look({ stage }: Visit): void {
    if (stage === "left") this.acceptor.tlsAccepted.add(this);
    else if (stage === "finished") this.#finish();
    else if (stage === "waits" && this.deadlineMs === Infinity)
      this.deadlineMs = performance.now() + ANSWER_TIMEOUT_MS;
    else if (stage === "finishes" && this.#isListened) this.deadlineMs = Infinity;
  }

  #finish(): void {
    if (this.#toClient.waiting.length > 0 || this.#finished === null || this.#keys === null) return;
    const { admitted, connection } = this.#finished;
    this.#finished = null;
    this.#closeDest(false);
    const [name, alpn] = [this.#keys.nameOf(admitted), alpnKind(admitted.protocols)];
    const client = { connection, suite: connection.suite, name, alpn };
    this.acceptor.showFirst(this, new RealityBytes(this.acceptor, this, client), this.#ofClient.events);
  }

  /** The listener is none any more: who has said nothing yet goes to the main thread, and others have a moment. */
  stopListening(): void {
    if (!this.#hasHeard && !this.#ofDest.isReady) return this.giveBack();
    this.#isListened = false;
    this.deadlineMs = Math.min(this.deadlineMs, performance.now() + LEAVING_MS);
  }

  timedOut(): void {
    const visit = this.#visit;
    if (visit === null || !this.#isConnected) return this.giveBack();
    visit.leave();
    if (visit.stage === "left") this.#look(visit);
    else this.end(true); // it does not take what is said to it
  }

  /** Of a client of whom nothing was read. */
  giveBack(): void {
    this.#closeDest(false);
    this.#isGone = true;
    this.acceptor.giveBack(this);
  }

  /** It is dest's, and the main thread connects the two. */
  handOver(): void {
    const visit = this.#visit;
    if (visit === null || this.#dest === null) return;
    const { calls, host, shared } = this.acceptor;
    calls.unwatch(host.epoll, this.fd);
    calls.unwatch(host.epoll, this.#dest.descriptor);
    const index = this.slot * 2 + CLIENT;
    const toClient = Buffer.concat([this.#toClient.waiting, visit.unsaid]);
    const toDest = this.#toDest.waiting;
    host.post({ index, records: null, toClient, toDest, why: visit.why.message } satisfies LeftClient);
    shared.tags[this.slot] = tag(this.listener, false, 0);
    this.#leave();
    host.report(this.slot, LEFT);
  }

  end(isFault: boolean): void {
    const { calls, table } = this.acceptor;
    this.#closeDest(isFault);
    table.descriptors[this.slot * 2] = -1;
    calls.discard(this.fd, isFault);
    this.#leave();
    this.acceptor.freeSlot(this.slot);
  }

  #closeDest(isFault: boolean): void {
    const dest = this.#dest;
    if (dest === null) return;
    const { calls, table } = this.acceptor;
    const fd = dest.descriptor;
    if (isFault && fd >= 0) {
      table.descriptors[this.slot * 2 + 1] = -1;
      calls.reset(fd);
    }
    dest.hangUp();
  }

  #leave(): void {
    this.acceptor.host.put(this.slot, null);
    this.drop();
  }

  drop(): void {
    this.#isGone = true;
    this.#visit?.[Symbol.dispose]();
    this.#finished?.connection[Symbol.dispose]();
    this.acceptor.tlsAccepted.leave(this);
    this.acceptor.onGone(this);
  }
}
