/**
 * One QUIC connection (RFC 9000, 9001, 9002, 9221), of either side, as a machine without sockets and clocks: datagrams and
 * times are given to it, and it says what to send and when to be woken. Times are milliseconds that never go back.
 */
import type { Endpoint } from "#core/endpoint.ts";
import { asError } from "#core/errors.ts";
import type { Congestion } from "./congestion/congestion.ts";
import { OwnIds, PeerIds } from "./connection-ids.ts";
import { ControlQueue } from "./control-queue.ts";
import {
  type ConnectionEvents,
  type ConnectionOptions,
  OWN_NUMBERS,
  type ServerStart,
} from "./connection-options.ts";
import { ConnectionEnd, PeerClosed } from "./connection-end.ts";
import { DatagramQueue } from "./datagram-queue.ts";
import { Establishment, firstDestination } from "./establishment.ts";
import { INTERNAL_ERROR, PROTOCOL_VIOLATION, QuicFault } from "./fault.ts";
import { FrameDispatch } from "./frame-dispatch.ts";
import { Handshake, HandshakeFailed } from "./handshake.ts";
import { IdleTimer } from "./idle-timer.ts";
import { Migration } from "./migration.ts";
import { PacketReceiver, type PacketHandler } from "./packet-receiver.ts";
import { PacketSender } from "./packet-sender.ts";
import { Path } from "./path.ts";
import { Paths } from "./paths.ts";
import { ApplicationKeys } from "./protection/application-keys.ts";
import { APPLICATION_SPACE, HANDSHAKE_SPACE, INITIAL_SPACE, PacketSpace } from "./recovery/packet-space.ts";
import { Recovery } from "./recovery/recovery.ts";
import type { QuicStream } from "./streams/quic-stream.ts";
import { StreamSet } from "./streams/stream-set.ts";
import type { PacketHeader } from "./wire/header.ts";
import type { WireReader } from "./wire/reader.ts";
import { encodeTransportParameters, UNSAID_NUMBERS } from "./wire/transport-parameters.ts";

const LEAST_SEND_BUFFER = 128 * 1024;
const MOST_SEND_BUFFER = 8 * 1024 * 1024;
/** Without a larger size said, and whatever peers say of datagrams: those of hysteria2 say nothing, and take this much. */
const LEAST_DATAGRAM_FRAME = 1200;
const DATAGRAM_OVERHEAD = 1 + 8 + 4 + 16 + 3;
/** So many probe timeouts in a row without an answer: perhaps only small datagrams arrive. */
const SILENT_PROBES = 3;

export class Connection implements PacketHandler {
  readonly #events: ConnectionEvents;
  readonly #isServer: boolean;
  readonly #spaces = [
    new PacketSpace(INITIAL_SPACE),
    new PacketSpace(HANDSHAKE_SPACE),
    new PacketSpace(APPLICATION_SPACE),
  ] as const;
  readonly #controls = new ControlQueue();
  readonly #datagrams = new DatagramQueue();
  readonly #keys: ApplicationKeys;
  readonly #peerIds: PeerIds;
  readonly #ownIds: OwnIds;
  readonly #streams: StreamSet;
  readonly #recovery: Recovery;
  readonly #handshake: Handshake;
  readonly #receiver: PacketReceiver;
  readonly #sender: PacketSender;
  readonly #dispatch: FrameDispatch;
  readonly #end: ConnectionEnd;
  readonly #idle: IdleTimer;
  readonly #paths: Paths;
  /** By which the datagram came that is being read. */
  #cameBy: Path;
  readonly #migration: Migration;
  readonly #establishment: Establishment;
  #nowMs: number;

  /** `start` null: the dialling side. Throws where TLS cannot begin. */
  constructor(
    options: ConnectionOptions,
    events: ConnectionEvents,
    start: ServerStart | null,
    nowMs: number,
  ) {
    const { ciphers, openTls, congestion } = options;
    const numbers = { ...UNSAID_NUMBERS, ...OWN_NUMBERS, ...options.numbers };
    this.#events = events;
    this.#isServer = start !== null;
    this.#nowMs = nowMs;
    this.#idle = new IdleTimer(numbers.idleTimeoutMs, options.keepAliveMs ?? 0, nowMs);
    this.#cameBy = new Path(start?.from ?? null, start?.isValidated ?? true);
    this.#paths = new Paths(this.#cameBy);
    const original = firstDestination(start);
    this.#keys = new ApplicationKeys(ciphers);
    const isServer = this.#isServer;
    const [controls, spaces, keys] = [this.#controls, this.#spaces, this.#keys];
    this.#peerIds = new PeerIds(controls, start?.client ?? original);
    this.#ownIds = new OwnIds(controls, start?.resetTokenOf ?? null, (id, isGiven) =>
      events.ownId(id, isGiven),
    );
    this.#end = new ConnectionEnd(events);
    this.#streams = new StreamSet({
      isServer,
      own: numbers,
      abortCode: options.abortCode ?? 0,
      controls,
      onStream: (stream) => events.stream(stream),
      wake: () => events.wake(),
      sendBufferBytes: () => this.#sendBufferBytes(),
    });
    this.#recovery = new Recovery(congestion, this.#streams);
    this.#handshake = new Handshake({
      isServer,
      ciphers,
      openTls,
      spaces,
      keys,
      parameters: encodeTransportParameters({
        ...OWN_NUMBERS,
        ...options.numbers,
        initialSource: this.#ownIds.first,
        ...(start === null
          ? {}
          : {
              originalDestination: start.original,
              retrySource: start.retrySource,
              resetToken: start.resetTokenOf(this.#ownIds.first),
            }),
      }),
    });
    this.#sender = new PacketSender(
      {
        isServer,
        ciphers,
        spaces,
        keys,
        controls,
        recovery: this.#recovery,
        datagrams: this.#datagrams,
        streams: this.#streams,
        peerIds: this.#peerIds,
        ownId: this.#ownIds.first,
        mostDatagramBytes: options.mostDatagramBytes ?? 1452,
        events,
        onHandshakeSent: () => this.#recovery.drop(spaces[INITIAL_SPACE]),
      },
      this.#paths.current,
    );
    this.#migration = new Migration({
      paths: this.#paths,
      sender: this.#sender,
      recovery: this.#recovery,
      peerIds: this.#peerIds,
      onMoved: () => events.moved(),
    });
    this.#receiver = new PacketReceiver({ isServer, ciphers, spaces, keys, handler: this });
    this.#establishment = new Establishment({
      start,
      original,
      spaces,
      keys,
      controls,
      handshake: this.#handshake,
      recovery: this.#recovery,
      peerIds: this.#peerIds,
      ownIds: this.#ownIds,
      streams: this.#streams,
      sender: this.#sender,
      idle: this.#idle,
      end: this.#end,
      wake: () => events.wake(),
      onConnected: () => {
        events.connected(this.#handshake.tls.alpn());
        this.#receiver.onHandshakeDone();
      },
    });
    this.#dispatch = new FrameDispatch({
      isServer,
      controls,
      recovery: this.#recovery,
      streams: this.#streams,
      peerIds: this.#peerIds,
      ownIds: this.#ownIds,
      onCrypto: (space, offset, bytes) => this.#establishment.onCrypto(space, offset, bytes),
      onAcked: (space) => {
        if (space.id === APPLICATION_SPACE) keys.allowUpdate();
      },
      onHandshakeDone: () => this.#establishment.confirm(),
      onNewToken: () => {},
      onPathChallenge: (data) => this.#migration.onChallenge(data),
      onPathResponse: (data) => this.#paths.onAnswer(data),
      onDatagram: (payload) => events.datagram(payload),
      onClose: (isApplication, code, reason) => this.#end.drain(new PeerClosed(isApplication, code, reason)),
    });
  }

  /** The dialling side says its first bytes; to be flushed. */
  begin(): void {
    try {
      this.#handshake.begin();
    } catch (error) {
      this.#fail(error);
    }
    this.#afterCall();
  }

  #sendBufferBytes(): number {
    return Math.min(MOST_SEND_BUFFER, Math.max(LEAST_SEND_BUFFER, 2 * this.#recovery.congestion.windowBytes));
  }

  get isClosed(): boolean {
    return this.#end.isOver;
  }

  /** The first id by which the peer calls us. */
  get firstId(): Uint8Array {
    return this.#ownIds.first;
  }

  /** Something of the peer has come that is authentic. */
  get isHeard(): boolean {
    return this.#establishment.isHeard;
  }

  /** Where the peer is; null: the dialling side's owner knows. */
  get peer(): Endpoint | null {
    return this.#paths.current.peer;
  }

  /** Milliseconds; 0: unknown. */
  get smoothedRttMs(): number {
    return this.#recovery.rtt.hasSample ? this.#recovery.rtt.smoothedMs : 0;
  }

  get statistics(): {
    readonly lostPackets: number;
    readonly keyUpdates: number;
    readonly datagramBytes: number;
  } {
    return {
      lostPackets: this.#recovery.lostPackets,
      keyUpdates: this.#keys.updates,
      datagramBytes: this.#sender.mtu.bytes,
    };
  }

  /** How often in a row the peer was asked for a sign of life without an answer. */
  get unansweredProbes(): number {
    return this.#recovery.probes.count;
  }

  get probeMs(): number {
    return this.#recovery.rtt.probeTimeoutMs;
  }

  /** As `QuicTls.exportKey`. */
  exportKey(label: Uint8Array, context: Uint8Array, size: number): Buffer {
    return this.#handshake.tls.exportKey(label, context, size);
  }

  setCongestion(congestion: Congestion): void {
    congestion.setDatagramBytes(this.#sender.mtu.bytes);
    this.#recovery.congestion = congestion;
  }

  /** Null: the peer allows no more at the moment; see `whenAllowed`. */
  open(isBidi: boolean): QuicStream | null {
    return this.#establishment.isConnected && !this.isClosed ? this.#streams.open(isBidi) : null;
  }

  whenAllowed(isBidi: boolean, on: () => void): { cancel(): void } {
    return this.#streams.whenAllowed(isBidi, on);
  }

  /** The peer may send so much ahead from now on, which is more than `maxData` of our numbers. */
  widen(windowBytes: number): void {
    if (!this.isClosed) this.#streams.widen(windowBytes);
  }

  /** Streams that are open, of either kind. */
  get openStreams(): number {
    return this.#streams.size;
  }

  /** Streams of both directions that are open. */
  get bidiStreams(): number {
    return this.#streams.bidiCount;
  }

  /** The largest payload that `sendDatagram` takes. */
  get maxDatagramBytes(): number {
    const peer = Math.max(LEAST_DATAGRAM_FRAME, this.#establishment.peer?.maxDatagramFrame ?? 0);
    return Math.min(peer - 3, this.#sender.mtu.bytes - DATAGRAM_OVERHEAD);
  }

  /** Keeps the payload. It is sent once, as soon as congestion control lets it, or dropped. */
  sendDatagram(payload: Uint8Array): void {
    if (this.isClosed) return;
    this.#datagrams.push(payload);
    this.#events.wake();
  }

  /**
   * A datagram of the peer, which may be anybody's. Its memory is lent until the call returns. `from` null: the path of the
   * dialling side.
   */
  receive(datagram: Uint8Array, nowMs: number, from: Endpoint | null = null): void {
    this.#nowMs = nowMs;
    if (this.#end.isOver) return this.#end.answer(this.#paths.current);
    this.#cameBy = this.#paths.of(from);
    this.#cameBy.receivedBytes += datagram.length;
    try {
      this.#receiver.receive(datagram, nowMs);
      if (this.#end.failure !== undefined) this.#streams.handOver();
    } catch (error) {
      this.#fail(error);
    }
    this.#afterCall();
  }

  onPacket(space: PacketSpace, source: Uint8Array | null, number: number, frames: WireReader): void {
    if (this.#end.isOver) return;
    if (source !== null) this.#establishment.adopt(source);
    const isNewest = number > space.received.largest;
    const { isEliciting, isProbing } = this.#dispatch.read(space, frames, this.#nowMs);
    space.received.add(number, isEliciting, space.id !== APPLICATION_SPACE, this.#nowMs);
    this.#idle.onReceived(this.#nowMs);
    if (space.id === HANDSHAKE_SPACE && this.#isServer) {
      this.#cameBy.isValidated = true;
      this.#recovery.drop(this.#spaces[INITIAL_SPACE]);
    }
    const mayMove = this.#isServer && this.#recovery.probes.isConfirmed && space.id === APPLICATION_SPACE;
    this.#migration.onPacket(this.#cameBy, mayMove && isNewest && !isProbing, this.#nowMs);
    if (this.#controls.isOverfull) throw new QuicFault(PROTOCOL_VIOLATION, "more to answer than can be said");
  }

  onRetry(header: PacketHeader, packet: Uint8Array): void {
    this.#establishment.onRetry(header, packet);
  }

  onVersions(header: PacketHeader, packet: Uint8Array): void {
    this.#establishment.onVersions(header, packet);
  }

  onUnreadable(datagram: Uint8Array): void {
    if (this.#peerIds.isReset(datagram)) this.#end.drain(new Error("the peer has lost the connection"));
  }

  /** Our own update of the keys, as the peer may do its. */
  updateKeys(): void {
    this.#keys.update(this.#nowMs, this.probeMs);
  }

  /** Gives its streams what has come, and sends all that may go. True: there is more; others are to have their turn before it is called again. */
  flush(nowMs: number): boolean {
    this.#nowMs = nowMs;
    if (this.#end.isOver) return false;
    const before = this.#recovery.inFlight;
    let hasMore = false;
    try {
      this.#streams.handOver();
      hasMore = this.#sender.flush(nowMs);
    } catch (error) {
      this.#fail(error);
    }
    this.#afterCall();
    if (this.#recovery.inFlight > before) this.#idle.onAsked(nowMs);
    return hasMore;
  }

  /** When `onTimer` is to be called at the latest; Infinity: never. */
  get deadlineMs(): number {
    if (this.#end.isOver) return Infinity;
    const { current, dueAtMs } = this.#paths;
    if (current.isHeldBack) return Math.min(this.#idleAtMs, dueAtMs);
    let atMs = Math.min(this.#sender.pacedAtMs, this.#idleAtMs, this.#keepAliveAtMs, dueAtMs);
    for (const space of this.#spaces) if (space.isOpen) atMs = Math.min(atMs, space.received.dueAtMs);
    return Math.min(atMs, this.#recovery.deadline(this.#spaces, this.#mustProbe));
  }

  get #mustProbe(): boolean {
    return !this.#isServer && !this.#recovery.probes.isConfirmed;
  }

  get #idleAtMs(): number {
    return this.#idle.idleAtMs(this.#recovery.rtt.probeTimeoutMs);
  }

  get #keepAliveAtMs(): number {
    const isWanted = this.#establishment.isConnected && this.#streams.size > 0 && !this.#sender.wantsPing;
    return isWanted ? this.#idle.keepAliveAtMs : Infinity;
  }

  /** Something is due; to be flushed afterwards. */
  onTimer(nowMs: number): void {
    this.#nowMs = nowMs;
    if (this.#end.isOver) return;
    if (nowMs >= this.#idleAtMs) {
      const why = this.#establishment.isConnected ? "the peer is silent" : "no answer to the handshake";
      return this.#finish(new Error(why));
    }
    if (nowMs >= this.#keepAliveAtMs) this.#sender.wantsPing = true;
    this.#migration.onTimer(nowMs);
    if (this.#recovery.deadline(this.#spaces, this.#mustProbe) > nowMs) return;
    this.#recovery.onTimeout(this.#spaces, this.#mustProbe, nowMs);
    if (this.#recovery.probes.count === SILENT_PROBES) this.#sender.mtu.onSilence();
  }

  /** Says the end to the peer, at once. `error` null: a good one. */
  close(code: number, reason: string, error: Error | null = null): void {
    if (this.#end.isOver) return;
    const isKnown = this.#establishment.isConnected;
    this.#end.say(this.#sender, { isApplication: true, isKnown, code, reason });
    this.#finish(error);
  }

  /** What breaks a rule ends this connection, and no other. */
  #fail(error: unknown): void {
    if (this.#end.isOver) return;
    const code = error instanceof QuicFault ? error.transportCode : INTERNAL_ERROR;
    this.#end.say(this.#sender, { isApplication: false, isKnown: true, code, reason: "" });
    this.#finish(asError(error instanceof HandshakeFailed ? error.reason : error));
  }

  /** The end may have been noticed within a call that had to go on. */
  #afterCall(): void {
    if (this.#end.failure !== undefined) this.#finish(this.#end.failure);
  }

  #finish(error: Error | null): void {
    if (this.#end.isFinished) return;
    this.#end.finish();
    this.#streams.abandon(error ?? new Error("the connection was closed"));
    for (const space of this.#spaces) space.drop();
    this.#keys[Symbol.dispose]();
    this.#handshake[Symbol.dispose]();
    this.#events.closed(error);
  }

  /** Ends it without a word: nothing of the peer was authentic. */
  discard(): void {
    this.#finish(null);
  }

  /** No datagram can reach it any more: its ids are free. */
  forget(): void {
    this.#ownIds.clear();
  }
}
