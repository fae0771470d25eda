import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type {
  ClientWire,
  DialEvents,
  LocalEnd,
  SessionObserver,
  Switched,
  WorkerConnection,
} from "#core/accepted.ts";
import type { DialPlan } from "#core/dial-plan.ts";
import { atNode } from "#core/errors.ts";
import { layersOf, type WireStart } from "#core/handover.ts";
import type { Endpoint } from "#core/session.ts";
import type { ClientSession } from "#core/wire-details.ts";
import type { StreamSocket } from "#core/sockets.ts";
import { abortStream } from "#core/stream.ts";
import { connectError, lateError } from "#net/dial/dial.ts";
import { guardErrors } from "#net/listen/accept.ts";
import type { OffloadOptions } from "#net/listen/accept-offload.ts";
import type { AcceptCalls } from "#platform/linux/accept-calls.ts";
import type { TlsLibrary } from "#platform/tls.ts";
import { KeptRecords } from "./kept-records.ts";
import { KeptTls } from "./kept-tls.ts";
import type { OffloadedFlow } from "./offloaded-flow.ts";
import {
  DIAL_TIMED_OUT,
  requestSlotOf,
  switchedOf,
  UNDERLAY_FAILED,
} from "#dataplane/workers/shared/accept-memory.ts";
import type { Sockaddrs } from "#dataplane/workers/shared/sockaddrs.ts";
import { wholeSeconds } from "#dataplane/workers/shared/whole-seconds.ts";
import type { DecidedEnds } from "./decided-rows.ts";
import type { WorkerHandle } from "./worker-handle.ts";
import type { WorkerTaskOwner } from "./task-owner.ts";
import { both } from "./followers.ts";
import { CLIENT, REMOTE, type Side } from "#dataplane/workers/shared/sides.ts";
import { specOf } from "#dataplane/workers/shared/wire-spec.ts";
import { DIAL, OPEN_SESSION, RESET, TAKE } from "#dataplane/workers/shared/relay-memory.ts";
import { socketOf } from "./socket-of.ts";
import { takeOpenDescriptor } from "./open-descriptor.ts";
import { takeStream } from "./taken-stream.ts";
import { int32At } from "#lib/at.ts";

const NO_BYTES = Buffer.alloc(0);

/** Of the main thread, for all of them. */
export interface WorkerClientEnv {
  readonly calls: AcceptCalls;
  readonly sockaddrs: Sockaddrs;
  readonly tlsLibrary: TlsLibrary;
}

/** What a thread has seen of its client. */
interface SeenRequest extends Pick<WorkerConnection, "source" | "local" | "original" | "switched"> {
  readonly request: Buffer;
  readonly handshakeBytes: number;
  /** Behind a handshake of TLS that the thread has done, by the library or by our own engine. */
  readonly isTls: boolean;
  readonly isRecords?: boolean;
  /** The client in whose session it is a stream. */
  readonly session?: WorkerClient;
}

/** A client whose request a worker has read, as the main thread sees it. */
export class WorkerClient implements WorkerConnection, WorkerTaskOwner {
  readonly source: Endpoint;
  readonly local: Endpoint;
  readonly original: Endpoint | null;
  request: Buffer;
  events: DialEvents | null = null;
  readonly thread: WorkerHandle;
  readonly slot: number;
  readonly #env: WorkerClientEnv;
  handshakeBytes: number;
  readonly switched: Switched | null;
  readonly #onTaken: (() => void) | undefined;
  /** Null: nothing lies over its socket. */
  readonly tls: KeptTls | null;
  readonly records: KeptRecords | null;
  #stream: Duplex | null = null;
  #onStream: ((stream: Duplex) => void) | null = null;
  #way: DialPlan | null = null;
  #takeBack: ClientWire["takeBack"];
  /** Relayed by its worker: the slot's events are the flow's. */
  #flow: OffloadedFlow | null = null;
  /** The thread has been told to dial, and has not failed. */
  #isDialling = false;
  /** It is a stream in the session of that client, and has no socket of its own; null: it is not. */
  readonly #of: WorkerClient | null;
  /** Of the streams that its worker finds in it. */
  #session: SessionObserver | null = null;
  /** Nothing more can be asked of the thread. */
  #isOver = false;

  private constructor(
    thread: WorkerHandle,
    slot: number,
    onTaken: (() => void) | undefined,
    env: WorkerClientEnv,
    seen: SeenRequest,
  ) {
    this.thread = thread;
    this.slot = slot;
    this.#env = env;
    this.#onTaken = onTaken;
    this.source = seen.source;
    this.local = seen.local;
    this.original = seen.original;
    this.switched = seen.switched;
    this.records = seen.isRecords === true ? new KeptRecords(seen.request, this, env.calls) : null;
    this.request = this.records?.payload ?? seen.request;
    this.handshakeBytes = this.records === null ? seen.handshakeBytes : 0;
    this.#of = seen.session ?? null;
    const { native } = env.tlsLibrary;
    this.tls =
      seen.isTls && native !== null ? new KeptTls(thread, slot * 2 + CLIENT, native.ssl, this) : null;
  }

  /** As the request slot has it. */
  static asking(
    thread: WorkerHandle,
    slot: number,
    options: OffloadOptions,
    env: WorkerClientEnv,
  ): WorkerClient {
    const { accepts } = thread;
    const { sockaddrs } = env;
    const word = int32At(accepts.tags, slot);
    const index = requestSlotOf(word);
    const handshakeBytes = int32At(accepts.sizes, index);
    return new WorkerClient(thread, slot, options.onTaken, env, {
      source: sockaddrs.source(accepts.source(slot)),
      local: sockaddrs.local(accepts.local(index)),
      original: options.handshake === "redirected" ? sockaddrs.original(accepts.original(index)) : null,
      request: handshakeBytes === 0 ? NO_BYTES : accepts.request(index),
      handshakeBytes,
      isTls: options.handshake === "tls",
      isRecords: options.handshake === "reality",
      switched: switchedOf(word),
    });
  }

  /** A stream of the session of that client. */
  static ofSession(session: WorkerClient, slot: number, request: Buffer, env: WorkerClientEnv): WorkerClient {
    const { thread, source, local } = session;
    const nothing = { original: null, isTls: false, switched: null, session };
    return new WorkerClient(thread, slot, undefined, env, {
      source,
      local,
      request,
      handshakeBytes: int32At(thread.accepts.sizes, requestSlotOf(int32At(thread.accepts.tags, slot))),
      ...nothing,
    });
  }

  /** One that the worker has decided, and that is connected. */
  static decided(thread: WorkerHandle, slot: number, ends: DecidedEnds, env: WorkerClientEnv): WorkerClient {
    const nothing = { original: null, request: NO_BYTES, handshakeBytes: 0, isTls: false, switched: null };
    const seen = { ...ends, ...nothing };
    return new WorkerClient(thread, slot, undefined, env, seen);
  }

  understood(bytes: number): void {
    this.handshakeBytes = bytes;
  }

  dial(way: DialPlan, replyBytes: Uint8Array, limited: boolean, wire?: ClientWire): void {
    if (this.#isOver) return;
    if (this.#of?.isOver === true) return this.reset(); // nothing is dialled for a user who was removed meanwhile
    this.#way = way;
    this.#takeBack = wire?.takeBack;
    const far = way.wire?.(); // it may throw, and then no command follows that has the worker read what was described
    this.#describe(CLIENT, wire === undefined ? undefined : this.#overSocket(wire.begin()));
    this.#describe(REMOTE, far);
    const { accepts, table } = this.thread;
    const { probes, routingMark: mark, interfaceName, timeoutMs } = way;
    const index = requestSlotOf(int32At(accepts.tags, this.slot));
    accepts.sizes[index] = this.handshakeBytes;
    accepts.writeDial(index, {
      address: this.#env.sockaddrs.encode(way),
      mark,
      timeoutMs,
      idleSeconds: probes === null ? 0 : wholeSeconds(probes.idleMs),
      intervalSeconds: probes === null ? 0 : wholeSeconds(probes.intervalMs),
      device: interfaceName === "" ? NO_BYTES : Buffer.from(interfaceName),
      replyBytes: this.#of !== null ? NO_BYTES : replyBytes, // its worker says it
    });
    table.limited[this.slot] = limited ? 1 : 0;
    this.#isDialling = true;
    this.thread.command(this.slot, DIAL);
  }

  openSession(session: ClientSession, observer: SessionObserver, wire: ClientWire): boolean {
    if (!this.isKept) return false;
    const start = this.#overSocket(wire.begin());
    const { accepts } = this.thread;
    accepts.sizes[requestSlotOf(int32At(accepts.tags, this.slot))] = this.handshakeBytes;
    this.request = NO_BYTES;
    this.#session = observer;
    this.#takeBack = wire.takeBack;
    this.#describe(CLIENT, { ...start, details: { ...start.details, session } });
    this.thread.command(this.slot, OPEN_SESSION);
    return true;
  }

  /** A stream of its session; false: there is no session, or it is over. */
  takeStream(stream: WorkerClient): boolean {
    if (this.#session === null || this.#isOver) return false;
    this.#session.onStream(stream);
    return true;
  }

  #overSocket(start: WireStart): WireStart {
    const { records, tls } = this;
    if (records !== null) return records.over(start);
    if (tls === null) return start;
    return { kind: "tls", numbers: [Number(tls.address)], unread: null, layers: layersOf(start) };
  }

  /** In the order in which the worker reads them. */
  #describe(side: Side, wire: WireStart | undefined): void {
    if (wire !== undefined) this.thread.describe(this.slot * 2 + side, specOf(wire));
  }

  dialledFrom(): LocalEnd | null {
    return this.#isOver ? null : dialledFrom(this.slot, this.thread, this.#env);
  }

  /** From here on the slot's events go to the flow. */
  handOverTo(flow: OffloadedFlow): void {
    this.events = this.#way = null;
    this.request = NO_BYTES; // nothing reads it any more
    this.#flow = flow;
    this.thread.handOver(this.slot, flow);
  }

  /** What takes the socket where the end of the flow leaves it open. */
  get takeBack(): ClientWire["takeBack"] {
    return this.#takeBack;
  }

  reset(): void {
    if (this.#flow !== null) return this.#flow.reset();
    if (this.#stream !== null) abortStream(this.#stream);
    if (this.#isOver) return;
    this.#isOver = true; // from now on its slot, its request slot and its descriptor may be another's at any moment
    this.thread.command(this.slot, RESET);
  }

  destroy(): void {
    if (this.#stream === null && this.#of !== null) return this.reset();
    if (this.#stream !== null || (this.tls === null && this.records === null))
      return void this.stream().destroy();
    if (!this.isKept) return;
    if (this.tls === null) return this.#env.calls.close(this.leave());
    const { fd, ssl } = this.tls.take();
    if (ssl !== 0n) this.#env.tlsLibrary.native?.ssl.free(ssl);
    if (fd >= 0) this.#env.calls.close(fd);
  }

  get worker(): WorkerConnection | null {
    return this.#isOver || this.#session !== null ? null : this;
  }

  stream(): Duplex {
    if (this.#stream !== null) return this.#stream;
    if (this.tls !== null || this.records !== null)
      throw new Error("TLS lies over the socket of this client");
    const socket = (this.isKept ? this.#take() : null) ?? new Socket().destroy();
    guardErrors(socket);
    this.#stream = socket;
    this.#onStream?.(socket);
    return socket;
  }

  #take(): StreamSocket | null {
    this.#isOver = true;
    if (this.#of !== null) return this.#takeOf(this.#of);
    this.#onTaken?.();
    return socketOfSlot(this.thread, this.slot, this.handshakeBytes, this.#env.calls);
  }

  #takeOf(session: WorkerClient): StreamSocket | null {
    if (!session.isOver) return takeStream(this.thread, this.slot, this.#env.calls);
    this.thread.command(this.slot, RESET);
    return null;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  get isKept(): boolean {
    return !this.#isOver && this.#flow === null && this.#session === null;
  }

  get isIdle(): boolean {
    return this.isKept && !this.#isDialling;
  }

  /** It does not count as taken: the worker has done its handshake. */
  leave(): number {
    this.#isOver = true;
    return descriptorOfSlot(this.thread, this.slot, this.#env.calls);
  }

  onContinued(stream: Duplex): void {
    this.#stream = stream;
    this.#onStream?.(stream);
  }

  reply(bytes: Uint8Array): void {
    this.stream().write(bytes);
  }

  follow(on: (stream: Duplex) => void): void {
    this.#onStream = both(this.#onStream, on);
  }

  onGrantRequest(): void {} // for bytes before the flow was attached; `handOverTo` checks

  onDialled(errno: number | null): void {
    if (errno === null) return this.events?.dialled();
    this.#isDialling = false;
    const forget = (): void => this.thread.forgetWires(this.slot);
    if (this.tls === null) forget();
    else this.tls.spared(forget);
    if (errno === UNDERLAY_FAILED) return this.events?.failed(null);
    const { ip, port, timeoutMs, isOfNode } = this.#way as DialPlan;
    const to = { ip, port };
    const error = errno === DIAL_TIMED_OUT ? lateError(to, timeoutMs) : connectError(to, errno);
    this.events?.failed(isOfNode === true ? atNode(error) : error);
  }

  onEnded(): void {
    this.#isOver = true;
    this.events?.ended();
    this.#session?.onEnded();
    if (this.#session !== null) this.#giveBack();
    // What a stream had to say may still lie between the threads, unless it was cut off.
    const isCut = this.#of !== null && this.thread.table.halfClosed[this.slot] === 0;
    if (isCut && this.#stream !== null) abortStream(this.#stream);
  }

  /** Of a session: what its wire has left open. */
  #giveBack(): void {
    const fd = takeOpenDescriptor(this.thread.table, this.slot * 2 + CLIENT);
    if (fd >= 0) this.#takeBack?.(fd);
  }
}

/** The near end of what a thread has dialled for the client of a slot; null: there is none yet, or any more. */
export function dialledFrom(
  slot: number,
  { atSeam, table }: Pick<WorkerHandle, "atSeam" | "table">,
  { calls, sockaddrs }: WorkerClientEnv,
): LocalEnd | null {
  const index = slot * 2 + 1;
  const fd = Atomics.load(table.descriptors, index);
  atSeam?.("named");
  if (fd < 0 || calls.localName(fd) < 0) return null;
  // The thread strikes a number off before it closes it: else the name may be of another's socket.
  if (Atomics.load(table.descriptors, index) !== fd) return null;
  const { ip, port } = sockaddrs.local(calls.address);
  return port === 0 ? null : { ip, port, descriptor: fd };
}

/** As a socket of the runtime, with what follows the handshake still unread. The slot is the thread's again. */
export function socketOfSlot(
  thread: WorkerHandle,
  slot: number,
  handshakeBytes: number,
  calls: AcceptCalls,
): StreamSocket {
  const fd = descriptorOfSlot(thread, slot, calls);
  if (fd >= 0 && handshakeBytes > 0) calls.consume(fd, handshakeBytes);
  return socketOf(fd, calls) ?? new Socket().destroy();
}

/** The client's, a second one that is ours; the slot is the thread's again. -1: there is none. */
function descriptorOfSlot(thread: WorkerHandle, slot: number, calls: AcceptCalls): number {
  const fd = calls.duplicate(int32At(thread.table.descriptors, slot * 2));
  thread.untrack(slot);
  thread.command(slot, TAKE);
  return fd;
}
