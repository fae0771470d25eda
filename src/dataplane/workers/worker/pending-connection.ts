import type { PlainHandshake, Switched } from "#core/accepted.ts";
import type { PendingEntry } from "#net/listen/pending-limiter.ts";
import { SOCKADDR_BYTES, v4At } from "#platform/linux/sockaddr.ts";
import { EAGAIN, EINTR, FAULT, HANGUP, PEER_ENDED, READABLE, WRITABLE } from "#platform/linux/relay-calls.ts";
import { readPlain, type PlainRequest } from "#protocols/mixed/plain-handshake.ts";
import { FAILED, WAITS, type TaskIo, type Outcome } from "./task.ts";
import { CLIENT, type Side } from "#dataplane/workers/shared/sides.ts";
import type { PendingOwner, RequestingTask } from "./pending-owner.ts";
import type { PendingTask, WireMessages } from "./pending-task.ts";
import {
  NO_AUTHENTICATION,
  REQUEST_BYTES,
  tag,
  UNDERLAY_FAILED,
  type Dial,
} from "#dataplane/workers/shared/accept-memory.ts";
import { NO_MESSAGE, PLAIN, WIRE_NUMBERS } from "#dataplane/workers/shared/wire-spec.ts";
import { FAULT_NUMBER, HANDSHAKE_DONE, STAGE_NUMBER } from "#dataplane/workers/shared/tls-stage.ts";
import { int32At } from "#lib/at.ts";
import type { DeadlineList } from "#lib/deadline-list.ts";
import { HANDED_OVER, NOT_DIALLED, REQUESTED, TLS_ACCEPTED } from "#dataplane/workers/shared/relay-memory.ts";
import type { TlsBytes } from "./tls-bytes.ts";
import type { Wish } from "./decider.ts";
import { RemoteDial } from "./remote-dial.ts";
import { readSwitch } from "./client-upgrade.ts";

const READS = 0;
/** Everything is there; the main thread has been asked, or no request slot is free yet. */
const ASKS = 1;
const DIALS = 2;
const GONE = 3;

/** Their clients are asked for nothing. */
const SILENT: ReadonlySet<PlainHandshake> = new Set(["none", "redirected", "transparent"]);
const PLAIN_WIRES: WireMessages = [NO_MESSAGE, NO_MESSAGE];
const NOTHING: PlainRequest = { from: 0, size: 0, wish: null };

/**
 * A client from accept to the first byte of the tunnel. Its handshake is parsed and stays in the socket until the dial
 * has succeeded, so the event loop, where it takes over before, finds the bytes as they came. From the
 * request to the answer the descriptor stays open whatever the client does: the main thread may duplicate it.
 */
export class PendingConnection implements RequestingTask {
  queued = false;
  readonly halfClosed = false;
  line: DeadlineList<PendingTask> | null = null;
  before: PendingTask | null = null;
  behind: PendingTask | null = null;
  deadlineMs = 0;
  member: PendingEntry | null = null;
  readonly slot: number;
  readonly listener: number;
  readonly fd: number;
  /** By SOCKS5. */
  greeted = false;
  readonly #acceptor: PendingOwner;
  readonly #handshake: PlainHandshake;
  /** Null: its bytes are those of the socket. */
  readonly #tls: TlsBytes | null;
  /** Where it is to ask for a switch from HTTP/1.1; empty: it was answered, or is not asked for. */
  #path: string;
  #switched: Switched | null = null;
  #stage = READS;
  #request = NOTHING;
  #requestSlot = -1;
  /** What the kernel has said of the client since its request was seen. */
  #clientEvents = 0;
  /** What was decided here has come to nothing: the main thread decides. */
  #mustAsk = false;
  #remote: RemoteDial | null = null;
  /** Of a dial by the main thread's plan. */
  #wires: WireMessages = PLAIN_WIRES;

  constructor(
    acceptor: PendingOwner,
    { slot, listener, fd }: Pick<RequestingTask, "slot" | "listener" | "fd">,
    handshake: PlainHandshake,
    path: string,
    tls: TlsBytes | null = null,
  ) {
    this.#acceptor = acceptor;
    this.slot = slot;
    this.fd = fd;
    this.listener = listener;
    this.#handshake = handshake;
    this.#path = path;
    this.#tls = tls;
  }

  begin(): boolean {
    const isSilent = SILENT.has(this.#handshake);
    if (isSilent) this.#ask();
    return isSilent;
  }

  onEvents(side: Side, events: number): boolean {
    if (side === CLIENT) this.#clientEvents |= events;
    else if (this.#remote !== null) this.#remote.events |= events;
    // A new socket is reported as writable, whether or not its client has said something.
    return this.#stage !== READS || (events & ~WRITABLE) !== 0;
  }

  limit(): void {} // what it becomes looks at the table

  grant(): void {} // it has asked for nothing

  run(io: TaskIo): Outcome {
    const isNew = this.#stage === READS;
    if (isNew) this.#read();
    const remote = this.#stage === DIALS ? this.#remote : null;
    return remote === null || (isNew && !remote.isAdopted) ? WAITS : this.#awaitDial(remote, io);
  }

  drop(): void {
    this.#stage = GONE;
    this.#remote?.drop();
    this.#remote = null;
    this.#freeRequestSlot();
    this.#acceptor.onGone(this);
  }

  #freeRequestSlot(): void {
    if (this.#requestSlot < 0) return;
    const index = this.#requestSlot;
    this.#requestSlot = -1;
    this.#acceptor.freeRequestSlot(index);
  }

  #look(): number {
    return this.#tls === null ? this.#acceptor.calls.look(this.fd) : this.#tls.look();
  }

  /** Its first words may have come with the end of its handshake. */
  readNow(): void {
    this.#read();
  }

  #read(): void {
    const { calls } = this.#acceptor;
    const size = this.#look();
    if (size === EAGAIN || size === EINTR) return;
    if (size <= 0) return this.end(size < 0);
    if (this.#path !== "") return this.#switch(size);
    if (this.#handshake === "first-bytes")
      return this.#found({ from: 0, size: Math.min(size, REQUEST_BYTES), wish: null }, size);
    const step = readPlain(this.#handshake, calls.bytes.subarray(0, size));
    if (step === "other") return this.handOver();
    if (step !== "wait") {
      if (step.greets && !this.greeted) {
        if (calls.say(this.fd, NO_AUTHENTICATION) < 0) return this.end(true);
        this.greeted = true;
      }
      if (step.request !== null) return this.#found(step.request, size);
    }
    if (this.#hasAll(size)) this.handOver();
  }

  /** No more of it is to be seen than these bytes. */
  #hasAll(size: number): boolean {
    const isOver = (this.#clientEvents & (PEER_ENDED | HANGUP | FAULT)) !== 0;
    return isOver || size === this.#acceptor.calls.bytes.length;
  }

  /** Answers its request; then it is looked at what it says behind that. */
  #switch(size: number): void {
    const step = readSwitch(this.#acceptor.calls.bytes.subarray(0, size), this.#path);
    if (step === "wait" && this.#tls === null && !this.#hasAll(size)) return;
    if (step === "wait" || step === "other") return this.handOver();
    const { answer, switched } = step;
    if (this.#consume(step.size) !== step.size || this.#say(answer) !== answer.length) return this.end(true);
    this.#path = "";
    this.#switched = switched;
    this.#acceptor.onSwitched(this);
    this.#read();
  }

  #say(bytes: Uint8Array): number {
    return this.#tls === null ? this.#acceptor.calls.say(this.fd, bytes) : this.#tls.say(bytes);
  }

  #saw(request: PlainRequest, seen: number): void {
    this.#request = request;
    // Readability for bytes behind the handshake, which are there already, is not reported again.
    this.#clientEvents = (this.#clientEvents & ~READABLE) | (seen > request.size ? READABLE : 0);
  }

  #found(request: PlainRequest, seen: number): void {
    this.#saw(request, seen);
    if (request.size - request.from > REQUEST_BYTES) this.handOver();
    else this.#ask();
  }

  /** Its bytes are those that were peeked at last. Without a request slot it is called again when one is free. */
  #ask(): void {
    const { calls, host, shared } = this.#acceptor;
    this.#stage = ASKS;
    const { from, size } = this.#request;
    const end = this.#handshake === "redirected" ? calls.originalName(this.fd, this.#family) : size;
    if (end < 0) return this.handOver(); // it came by itself
    if (this.#decide()) return;
    this.#requestSlot = this.#acceptor.takeRequestSlot(this);
    if (this.#requestSlot < 0) return;
    const local = this.#acceptor.localOf(this.listener, this.fd);
    shared.writeRequest(this.#requestSlot, local, calls.bytes.subarray(from, end));
    shared.sizes[this.#requestSlot] = size;
    shared.tags[this.slot] = tag(this.listener, this.greeted, this.#requestSlot, this.#switched);
    this.#acceptor.onAsked(this);
    host.report(this.slot, REQUESTED);
  }

  get #family(): 4 | 6 {
    return v4At(this.#acceptor.shared.sources, this.slot * SOCKADDR_BYTES) > 0 ? 4 : 6;
  }

  /** True: it was decided here. */
  #decide(): boolean {
    const { decider, shared } = this.#acceptor;
    const wish = this.#mustAsk ? null : (this.#request.wish ?? this.#knownWish());
    if (wish === null) return false; // where it wants to is not known here
    const { slot, listener } = this;
    const isOwn = this.#handshake !== "transparent";
    const local = isOwn ? this.#acceptor.localOf(listener, this.fd) : this.#acceptor.nameOf(listener);
    const { type, destination, success } = wish;
    const dial = decider.decide({ type, destination, success, slot, listener, local });
    if (dial === null) return false;
    shared.tags[slot] = tag(listener, this.greeted, 0);
    this.#acceptor.onAsked(this);
    this.#dialBy(dial, true);
    return true;
  }

  /** Of a client that is asked for nothing. */
  #knownWish(): Wish | null {
    const { calls, decider } = this.#acceptor;
    if (this.#handshake === "redirected") return decider.captured("Redir", calls.bytes);
    if (this.#handshake !== "transparent") return decider.wishOf(this.listener);
    return calls.localName(this.fd) < 0 ? null : decider.captured("TProxy", calls.address);
  }

  askAgain(): void {
    if (this.#stage !== ASKS) return;
    const { size } = this.#request;
    if (size > 0 && this.#look() < size) this.end(true);
    else this.#ask();
  }

  handOver(): void {
    const { host, shared } = this.#acceptor;
    this.#stage = ASKS;
    shared.tags[this.slot] = tag(this.listener, this.greeted, 0, this.#switched);
    this.#acceptor.onAsked(this);
    if (this.#tls === null) host.report(this.slot, HANDED_OVER);
    else this.#handOverTls();
  }

  /** With the library's object: nothing of it is this thread's any more but the slot. */
  #handOverTls(): void {
    const { calls, host, table } = this.#acceptor;
    const at = this.slot * 2 * WIRE_NUMBERS;
    table.wireNumbers[at + STAGE_NUMBER] = HANDSHAKE_DONE;
    table.wireNumbers[at + FAULT_NUMBER] = 0;
    calls.unwatch(host.epoll, this.fd);
    host.put(this.slot, null);
    this.drop();
    host.report(this.slot, TLS_ACCEPTED);
  }

  end(isFault: boolean): void {
    const { calls, table } = this.#acceptor;
    this.#tls?.free();
    table.descriptors[this.slot * 2] = -1;
    calls.discard(this.fd, isFault);
    this.#leave();
  }

  /** The main thread has a descriptor of its own. */
  taken(): void {
    const { calls, host, table } = this.#acceptor;
    calls.unwatch(host.epoll, this.fd);
    table.descriptors[this.slot * 2] = -1;
    calls.close(this.fd);
    this.#leave();
  }

  #leave(): void {
    this.#acceptor.host.put(this.slot, null);
    this.drop();
    this.#acceptor.freeSlot(this.slot);
  }

  /** As the request slot says, with such wires over both sockets. */
  dial(wires: WireMessages): void {
    const { shared } = this.#acceptor;
    const plan = shared.dial(this.#requestSlot);
    const understood = int32At(shared.sizes, this.#requestSlot);
    if (understood < this.#request.size)
      this.#saw({ ...this.#request, size: understood }, this.#request.size);
    this.#wires = wires;
    this.#freeRequestSlot();
    this.#dialBy(plan, false);
  }

  #dialBy(dial: Dial, isDecided: boolean): void {
    const { host } = this.#acceptor;
    const under = isDecided ? dial.under : this.#wires[1].under;
    const remote = new RemoteDial(this.#acceptor, this.slot, dial, { isDecided, under });
    this.#remote = remote;
    const error = remote.start();
    if (error !== 0) return this.#refused(remote, error);
    this.#stage = DIALS;
    this.#acceptor.onDialling(this, remote.timeoutMs);
    if (!remote.isAdopted && !host.watch(this.slot, remote.descriptor, 1)) host.end(this.slot, true);
  }

  timedOut(): void {
    const moreMs = this.#remote?.takeMoreMs() ?? 0;
    if (this.#remote === null) this.end(false);
    else if (moreMs > 0) this.deadlineMs += moreMs;
    else this.#refused(this.#remote, this.#remote.lateErrno);
  }

  /** For one that was decided here and still dials: it could not ask any more. */
  handBack(): void {
    if (this.#remote !== null) this.#hangUp(this.#remote);
    this.handOver();
  }

  #hangUp(remote: RemoteDial): void {
    remote.fail();
    this.#remote = null;
    this.#stage = ASKS;
    this.#acceptor.onDialled(this);
  }

  #refused(remote: RemoteDial, errno: number): void {
    const { host, table } = this.#acceptor;
    this.#hangUp(remote);
    if (remote.isFirstOfMany || (remote.isDecided && errno === UNDERLAY_FAILED)) return this.handOver();
    if (remote.isDecided) return this.#askAfterAll();
    table.asked[this.slot * 2] = errno;
    host.report(this.slot, NOT_DIALLED);
  }

  #askAfterAll(): void {
    this.#mustAsk = true;
    this.askAgain();
  }

  #awaitDial(remote: RemoteDial, io: TaskIo): Outcome {
    if ((this.#clientEvents & (HANGUP | FAULT)) !== 0) return FAILED; // the client has gone
    const error = remote.takeResult();
    if (error === 0) return this.#begin(remote, io);
    if (error !== null) this.#refused(remote, error);
    return WAITS;
  }

  #consume(size: number): number {
    return this.#tls === null ? this.#acceptor.calls.consume(this.fd, size) : this.#tls.consume(size);
  }

  #begin(remote: RemoteDial, io: TaskIo): Outcome {
    const { calls, host, table } = this.#acceptor;
    const { size } = this.#request;
    if (!remote.commit()) {
      this.#hangUp(remote);
      this.#askAfterAll();
      return WAITS;
    }
    if (size > 0 && this.#consume(size) !== size) return FAILED;
    const { replyBytes } = remote;
    if (replyBytes.length > 0 && calls.say(this.fd, replyBytes) !== replyBytes.length) return FAILED;
    this.#wires = [this.#wires[CLIENT], remote.begin(this.#wires[1])];
    // A wire of plain bytes sets it by itself, once it has more than one piece.
    const isSet = this.#wires[1].under !== undefined;
    if (table.kinds[this.slot * 2 + 1] !== PLAIN && !isSet) calls.noDelay(remote.descriptor);
    const pair = host.pair(this.slot, this.#wires);
    if (pair === null) return FAILED;
    this.#acceptor.onDialled(this);
    this.#stage = GONE;
    this.#remote = null;
    host.put(this.slot, pair);
    remote.succeed();
    if (this.#clientEvents !== 0) pair.onEvents(CLIENT, this.#clientEvents);
    pair.onEvents(1, remote.events);
    return pair.run(io);
  }
}
