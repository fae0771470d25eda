import type { PlainHandshake } from "#core/accepted.ts";
import { FAULT, HANGUP, PEER_ENDED, READABLE, WRITABLE } from "#platform/linux/relay-calls.ts";
import type { FirstRequest } from "#protocols/first-requests.ts";
import type { PlainRequest } from "#protocols/mixed/plain-handshake.ts";
import { FAILED, WAITS, type TaskIo, type Outcome } from "./task.ts";
import { CLIENT, type Side } from "#dataplane/workers/shared/sides.ts";
import type { PendingOwner, RequestingTask } from "./pending-owner.ts";
import type { WireMessages } from "./pending-task.ts";
import { OF_SESSION, tag } from "#dataplane/workers/shared/slot-tag.ts";
import { REQUEST_BYTES, UNDERLAY_FAILED, type Dial } from "#dataplane/workers/shared/request-memory.ts";
import { NO_MESSAGE, type WireMessage } from "#dataplane/workers/shared/wire-spec.ts";
import type { KeptClientStream } from "#dataplane/workers/wire/kept-client.ts";
import { int32At } from "#lib/at.ts";
import { HANDED_OVER, NOT_DIALLED, REQUESTED } from "#dataplane/workers/shared/opcodes.ts";
import { AcceptedTask } from "./accepted-task.ts";
import { beginRelay } from "./begin-relay.ts";
import type { ClientBytes } from "./client-bytes.ts";
import { ClientReader } from "./client-reader.ts";
import { decideHere, redirectedTo } from "./decide-here.ts";
import { MuxDial } from "./mux-dial.ts";
import type { Remote } from "./remote.ts";
import { RemoteDial } from "./remote-dial.ts";
import { SocketBytes } from "./socket-bytes.ts";

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
export class PendingConnection extends AcceptedTask implements RequestingTask {
  readonly #handshake: PlainHandshake;
  readonly #bytes: ClientBytes;
  readonly #reader: ClientReader;
  #stage = READS;
  #request = NOTHING;
  #requestSlot = -1;
  /** What the kernel has said of the client since its request was seen. */
  #clientEvents = 0;
  /** What was decided here has come to nothing: the main thread decides. */
  #mustAsk = false;
  #remote: Remote | null = null;
  /** Of a dial by the main thread's plan. */
  #wires: WireMessages = PLAIN_WIRES;

  constructor(
    acceptor: PendingOwner,
    client: Pick<RequestingTask, "slot" | "listener" | "fd">,
    handshake: PlainHandshake,
    path: string,
    bytes: ClientBytes = new SocketBytes(acceptor, client.fd),
  ) {
    super(acceptor, client);
    this.#handshake = handshake;
    this.#bytes = bytes;
    this.#reader = new ClientReader(acceptor.calls, bytes, handshake, path);
  }

  get greeted(): boolean {
    return this.#reader.greeted;
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
    this.#bytes.stream?.drop();
    this.#bytes.dispose?.();
    this.#freeRequestSlot();
    this.acceptor.onGone(this);
  }

  #freeRequestSlot(): void {
    if (this.#requestSlot < 0) return;
    const index = this.#requestSlot;
    this.#requestSlot = -1;
    this.acceptor.freeRequestSlot(index);
  }

  /** Its first words may have come with the end of its handshake. */
  readNow(): void {
    this.#read();
  }

  #read(): void {
    const isOver = (this.#clientEvents & (PEER_ENDED | HANGUP | FAULT)) !== 0;
    const reading = this.#reader.read(isOver);
    if (reading === "wait") return;
    if (reading === "end" || reading === "fault") return this.end(reading === "fault");
    if (reading === "other") return this.handOver();
    if (reading !== "switched") return this.#found(reading, this.#reader.seen);
    this.acceptor.onSwitched(this);
    this.#read();
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
    const { calls, host, shared } = this.acceptor;
    this.#stage = ASKS;
    const { from, size } = this.#request;
    const end = this.#handshake === "redirected" ? redirectedTo(this.acceptor, this) : size;
    if (end < 0) return this.handOver(); // it came by itself
    if (this.#decide()) return;
    this.#requestSlot = this.acceptor.takeRequestSlot(this);
    if (this.#requestSlot < 0) return;
    const local = this.acceptor.localOf(this.listener, this.fd);
    shared.requests.writeRequest(this.#requestSlot, local, calls.bytes.subarray(from, end));
    shared.requests.sizes[this.#requestSlot] = size;
    const kind = this.#bytes.stream === null ? 0 : OF_SESSION;
    shared.tags[this.slot] =
      kind | tag(this.listener, this.greeted, this.#requestSlot, this.#reader.switched);
    this.acceptor.onAsked(this);
    host.report(this.slot, REQUESTED);
  }

  /** True: it was decided here. */
  #decide(): boolean {
    // Of frames, and in a session, the main thread knows what they say.
    if (this.#mustAsk || this.#reader.switched !== null || this.#bytes.stream !== null) return false;
    const decided = decideHere(this.acceptor, this, this.#handshake, this.#request);
    if (decided === null) return false;
    if (decided.first !== null) this.#understood(decided.first);
    this.acceptor.shared.tags[this.slot] = tag(this.listener, this.greeted, 0);
    this.acceptor.onAsked(this);
    this.#dialBy(decided.dial, true);
    return true;
  }

  /** A request of a user: the bytes behind it are the tunnel's. */
  #understood({ size, layers }: FirstRequest): void {
    this.#saw({ ...this.#request, size }, this.#request.size);
    this.#wires = [{ ...NO_MESSAGE, layers }, NO_MESSAGE];
  }

  askAgain(): void {
    if (this.#stage !== ASKS) return;
    if (this.#reader.looksAgain(this.#request.size)) this.#ask();
    else this.end(true);
  }

  handOver(): void {
    const { host, shared } = this.acceptor;
    if (this.#bytes.stream !== null) return; // it asks through its session, whatever becomes of the listener
    this.#stage = ASKS;
    shared.tags[this.slot] = tag(this.listener, this.greeted, 0, this.#reader.switched);
    this.acceptor.onAsked(this);
    const event = this.#bytes.depart();
    if (event !== HANDED_OVER) this.#forget();
    host.report(this.slot, event);
  }

  end(isFault: boolean): void {
    const { calls, table } = this.acceptor;
    this.#bytes.free();
    table.descriptors[this.slot * 2] = -1;
    if (this.fd >= 0) calls.discard(this.fd, isFault);
    this.#leave();
  }

  /** The main thread has a descriptor of its own. */
  taken(): void {
    const { calls, host, table } = this.acceptor;
    const { stream } = this.#bytes;
    if (stream !== null) return this.#relay(stream);
    calls.unwatch(host.epoll, this.fd);
    table.descriptors[this.slot * 2] = -1;
    calls.close(this.fd);
    this.#leave();
  }

  /** To the descriptor of the main thread's that stands in the slot. */
  #relay(stream: KeptClientStream): void {
    const { host, shared, table } = this.acceptor;
    this.#bytes.consume(int32At(shared.requests.sizes, this.#requestSlot));
    this.#freeRequestSlot();
    stream.awaitAnswer();
    const pair = host.pair(this.slot, [{ ...NO_MESSAGE, made: stream }, NO_MESSAGE]);
    const far = int32At(table.descriptors, this.slot * 2 + 1);
    if (pair === null || !host.watch(this.slot, far, 1)) return host.end(this.slot, true);
    this.#stage = GONE;
    host.put(this.slot, pair);
    host.wake(this.slot * 2, READABLE | this.#clientEvents);
  }

  /** Its client has proved itself with the bytes that were understood; what follows are frames. */
  openSession(message: WireMessage): void {
    const { host, shared } = this.acceptor;
    const understood = int32At(shared.requests.sizes, this.#requestSlot);
    this.#freeRequestSlot();
    if (this.#bytes.consume(understood) !== understood) return host.end(this.slot, true);
    this.#stage = GONE;
    this.acceptor.kept.open(this, this.#bytes.begin?.(message) ?? message, this.#clientEvents);
  }

  #forget(): void {
    this.acceptor.host.put(this.slot, null);
    this.drop();
  }

  #leave(): void {
    this.#forget();
    this.acceptor.freeSlot(this.slot);
  }

  /** As the request slot says, with such wires over both sockets. */
  dial(wires: WireMessages): void {
    const { shared } = this.acceptor;
    const plan = shared.requests.dial(this.#requestSlot);
    const understood = int32At(shared.requests.sizes, this.#requestSlot);
    if (understood < this.#request.size)
      this.#saw({ ...this.#request, size: understood }, this.#request.size);
    this.#wires = wires;
    this.#freeRequestSlot();
    this.#dialBy(plan, false);
  }

  #dialBy(dial: Dial, isDecided: boolean): void {
    const { host } = this.acceptor;
    const under = isDecided ? dial.under : this.#wires[1].under;
    const remote: Remote =
      under?.mux === undefined
        ? new RemoteDial(this.acceptor, this.slot, dial, { isDecided, under })
        : new MuxDial(this.acceptor, this.slot, dial, under.mux, isDecided);
    this.#remote = remote;
    const error = remote.start();
    if (error !== 0) return this.#refused(remote, error);
    this.#stage = DIALS;
    this.acceptor.onDialling(this, remote.timeoutMs);
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

  #hangUp(remote: Remote): void {
    remote.fail();
    this.#remote = null;
    this.#stage = ASKS;
    this.acceptor.onDialled(this);
  }

  #refused(remote: Remote, errno: number): void {
    const { host, table } = this.acceptor;
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

  #awaitDial(remote: Remote, io: TaskIo): Outcome {
    if ((this.#clientEvents & (HANGUP | FAULT)) !== 0) return FAILED; // the client has gone
    const error = remote.takeResult();
    if (error === 0) return this.#begin(remote, io);
    if (error !== null) this.#refused(remote, error);
    return WAITS;
  }

  #begin(remote: Remote, io: TaskIo): Outcome {
    if (!remote.commit()) {
      this.#hangUp(remote);
      this.#askAfterAll();
      return WAITS;
    }
    const { host } = this.acceptor;
    const { slot, fd } = this;
    const client = { slot, fd, bytes: this.#bytes, handshakeBytes: this.#request.size };
    const pair = beginRelay(this.acceptor, client, remote, this.#wires);
    if (pair === null) return FAILED;
    this.acceptor.onDialled(this);
    this.#stage = GONE;
    this.#remote = null;
    host.put(slot, pair);
    remote.succeed();
    if (this.#clientEvents !== 0) pair.onEvents(CLIENT, this.#clientEvents);
    pair.onEvents(1, remote.events);
    return pair.run(io);
  }
}
