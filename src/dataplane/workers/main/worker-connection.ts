import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type {
  ClientWire,
  DialEvents,
  Followed,
  LocalEnd,
  SessionObserver,
  Switched,
  WorkerConnection,
} from "#core/accepted.ts";
import type { DialPlan } from "#core/dial-plan.ts";
import type { WireStart } from "#core/wire-state.ts";
import type { Endpoint } from "#core/session.ts";
import type { ClientSession } from "#core/wire-details.ts";
import type { StreamSocket } from "#core/sockets.ts";
import { abortStream } from "#core/stream.ts";
import { guardErrors } from "#net/listen/accept.ts";
import type { OffloadOptions } from "#net/listen/accept-offload.ts";
import type { AcceptCalls } from "#platform/linux/accept-calls.ts";
import type { TlsLibrary } from "#platform/tls.ts";
import { requestSlotOf } from "#dataplane/workers/shared/slot-tag.ts";
import { DIAL, OPEN_SESSION, RESET } from "#dataplane/workers/shared/opcodes.ts";
import { CLIENT, REMOTE, type Side } from "#dataplane/workers/shared/sides.ts";
import type { Sockaddrs } from "#dataplane/workers/shared/sockaddrs.ts";
import { specOf } from "#dataplane/workers/shared/wire-spec.ts";
import { int32At } from "#lib/at.ts";
import type { DecidedEnds } from "./decided-rows.ts";
import { both } from "./followers.ts";
import type { KeptCover } from "./kept-cover.ts";
import { KeptRecords } from "./kept-records.ts";
import { KeptTls } from "./kept-tls.ts";
import type { OffloadedFlow } from "./offloaded-flow.ts";
import { takeOpenDescriptor } from "./open-descriptor.ts";
import { dialFailure, planDial } from "./plan-dial.ts";
import { noRequest, readRequest, type SeenRequest } from "./seen-request.ts";
import { descriptorOfSlot, dialledFrom, socketOfSlot } from "./slot-socket.ts";
import type { WorkerTaskOwner } from "./task-owner.ts";
import type { WorkerHandle } from "./worker-handle.ts";

const NO_BYTES = Buffer.alloc(0);

/** Of the main thread, for all of them. */
export interface WorkerClientEnv {
  readonly calls: AcceptCalls;
  readonly sockaddrs: Sockaddrs;
  readonly tlsLibrary: TlsLibrary;
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
  protected readonly env: WorkerClientEnv;
  handshakeBytes: number;
  readonly switched: Switched | null;
  readonly #onTaken: (() => void) | undefined;
  /** Null: nothing lies over its socket. */
  readonly tls: KeptTls | null;
  readonly records: KeptRecords | null;
  #stream: Duplex | null = null;
  #onStream: ((one: Followed) => void) | null = null;
  #way: DialPlan | null = null;
  #takeBack: ClientWire["takeBack"];
  /** Relayed by its worker: the slot's events are the flow's. */
  #flow: OffloadedFlow | null = null;
  /** The thread has been told to dial, and has not failed. */
  #isDialling = false;
  /** Of the streams that its worker finds in it. */
  #session: SessionObserver | null = null;
  /** Nothing more can be asked of the thread. */
  #isOver = false;

  protected constructor(
    thread: WorkerHandle,
    slot: number,
    env: WorkerClientEnv,
    seen: SeenRequest,
    onTaken?: () => void,
  ) {
    this.thread = thread;
    this.slot = slot;
    this.env = env;
    this.#onTaken = onTaken;
    this.source = seen.source;
    this.local = seen.local;
    this.original = seen.original;
    this.switched = seen.switched;
    const { calls, tlsLibrary } = env;
    const ssl = seen.over === "tls" ? (tlsLibrary.native?.ssl ?? null) : null;
    this.tls = ssl === null ? null : new KeptTls(thread, slot * 2 + CLIENT, ssl, calls, this);
    this.records = seen.over === "records" ? new KeptRecords(seen.request, this, calls) : null;
    this.request = this.records?.payload ?? seen.request;
    this.handshakeBytes = this.records === null ? seen.handshakeBytes : 0;
  }

  /** As the request slot has it. */
  static asking(
    thread: WorkerHandle,
    slot: number,
    options: OffloadOptions,
    env: WorkerClientEnv,
  ): WorkerClient {
    const seen = readRequest(thread, slot, options, env.sockaddrs);
    return new WorkerClient(thread, slot, env, seen, options.onTaken);
  }

  /** One that the worker has decided, and that is connected. */
  static decided(thread: WorkerHandle, slot: number, ends: DecidedEnds, env: WorkerClientEnv): WorkerClient {
    return new WorkerClient(thread, slot, env, noRequest(ends));
  }

  /** What lies over its socket; null: nothing. */
  get #cover(): KeptCover | null {
    return this.tls ?? this.records;
  }

  get #requestSlot(): number {
    return requestSlotOf(int32At(this.thread.accepts.tags, this.slot));
  }

  understood(bytes: number): void {
    this.handshakeBytes = bytes;
  }

  dial(way: DialPlan, replyBytes: Uint8Array, limited: boolean, wire?: ClientWire): void {
    if (this.#isOver) return;
    this.#way = way;
    this.#takeBack = wire?.takeBack;
    const far = way.wire?.(); // it may throw, and then no command follows that has the worker read what was described
    this.#describe(CLIENT, wire === undefined ? undefined : this.overSocket(wire.begin()));
    this.#describe(REMOTE, far);
    const { accepts, table } = this.thread;
    this.writeHandshakeBytes();
    accepts.requests.writeDial(this.#requestSlot, planDial(way, replyBytes, this.env.sockaddrs));
    table.limited[this.slot] = limited ? 1 : 0;
    this.#isDialling = true;
    this.thread.command(this.slot, DIAL);
  }

  openSession(session: ClientSession, observer: SessionObserver, wire: ClientWire): boolean {
    if (!this.isKept) return false;
    const start = this.overSocket(wire.begin());
    this.writeHandshakeBytes();
    this.request = NO_BYTES;
    this.#session = observer;
    this.#takeBack = wire.takeBack;
    this.#describe(CLIENT, { ...start, details: { ...start.details, session } });
    this.thread.command(this.slot, OPEN_SESSION);
    if (observer.followed !== undefined) this.#onStream?.(observer.followed);
    return true;
  }

  /** A stream of its session; false: there is no session, or it is over. */
  takeStream(stream: WorkerConnection): boolean {
    if (this.#session === null || this.#isOver) return false;
    this.#session.onStream(stream);
    return true;
  }

  /** How much of the request was the handshake: read by its worker with the next command. */
  protected writeHandshakeBytes(): void {
    this.thread.accepts.requests.sizes[this.#requestSlot] = this.handshakeBytes;
  }

  /** What lies over the client's socket, given what the listener has found to lie over its bytes. */
  protected overSocket(start: WireStart): WireStart {
    return this.#cover?.over(start) ?? start;
  }

  /** In the order in which the worker reads them. */
  #describe(side: Side, wire: WireStart | undefined): void {
    if (wire !== undefined) this.thread.describe(this.slot * 2 + side, specOf(wire));
  }

  dialledFrom(): LocalEnd | null {
    return this.#isOver ? null : dialledFrom(this.slot, this.thread, this.env);
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
    const cover = this.#cover;
    if (this.#stream !== null || cover === null) this.stream().destroy();
    else if (this.isKept) cover.destroy();
  }

  get worker(): WorkerConnection | null {
    return this.#isOver || this.#session !== null ? null : this;
  }

  stream(): Duplex {
    if (this.#stream !== null) return this.#stream;
    if (this.#cover !== null) throw new Error("TLS lies over the socket of this client");
    const socket = (this.isKept ? this.#take() : null) ?? new Socket().destroy();
    guardErrors(socket);
    this.#stream = socket;
    this.#onStream?.(socket);
    return socket;
  }

  #take(): StreamSocket | null {
    this.#isOver = true;
    return this.takeSocket();
  }

  /** Null: nothing is left of it. */
  protected takeSocket(): StreamSocket | null {
    this.#onTaken?.();
    return socketOfSlot(this.thread, this.slot, this.handshakeBytes, this.env.calls);
  }

  protected get hasStream(): boolean {
    return this.#stream !== null;
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
    return descriptorOfSlot(this.thread, this.slot, this.env.calls);
  }

  onContinued(stream: Duplex): void {
    this.#stream = stream;
    this.#onStream?.(stream);
  }

  reply(bytes: Uint8Array): void {
    this.stream().write(bytes);
  }

  follow(on: (one: Followed) => void): void {
    this.#onStream = both(this.#onStream, on);
  }

  onGrantRequest(): void {} // for bytes before the flow was attached; `handOverTo` checks

  onDialled(errno: number | null): void {
    if (errno === null) return this.events?.dialled();
    this.#isDialling = false;
    const forget = (): void => this.thread.forgetWires(this.slot);
    if (this.#cover === null) forget();
    else this.#cover.spared(forget);
    if (this.#way !== null) this.events?.failed(dialFailure(this.#way, errno));
  }

  onEnded(): void {
    this.#isOver = true;
    this.events?.ended();
    this.#session?.onEnded();
    if (this.#session !== null) this.#giveBack();
  }

  /** Of a session: what its wire has left open. */
  #giveBack(): void {
    const fd = takeOpenDescriptor(this.thread.table, this.slot * 2 + CLIENT);
    if (fd >= 0) this.#takeBack?.(fd);
  }
}
