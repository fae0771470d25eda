/**
 * One QUIC connection (RFC 9000, 9001, 9002, 9221), of either side, as a machine without sockets and clocks: datagrams and
 * times are given to it, and it says what to send and when to be woken. Times are milliseconds that never go back.
 */
import type { Endpoint } from "#core/endpoint.ts";
import { asError } from "#core/errors.ts";
import type { Congestion } from "./congestion/congestion.ts";
import { Deadlines } from "./connection-deadlines.ts";
import type {
  ConnectionEvents,
  ConnectionOptions,
  ConnectionStatistics,
  ServerStart,
} from "./connection-options.ts";
import { ConnectionParts } from "./connection-parts.ts";
import { INTERNAL_ERROR, PROTOCOL_VIOLATION, QuicFault } from "./fault.ts";
import { HandshakeFailed } from "./handshake.ts";
import type { PacketHandler, PacketOrigin } from "./packet-receiver.ts";
import type { Path } from "./path.ts";
import {
  APPLICATION_SPACE,
  HANDSHAKE_SPACE,
  INITIAL_SPACE,
  type PacketSpace,
} from "./recovery/packet-space.ts";
import type { QuicStream } from "./streams/quic-stream.ts";
import type { PacketHeader } from "./wire/header.ts";
import type { WireReader } from "./wire/reader.ts";

/** Without a larger size said, and whatever peers say of datagrams: those of hysteria2 say nothing, and take this much. */
const LEAST_DATAGRAM_FRAME = 1200;
const DATAGRAM_OVERHEAD = 1 + 8 + 4 + 16 + 3;
const NOTHING = new Uint8Array(0);
/** So many probe timeouts in a row without an answer: perhaps only small datagrams arrive, or such without marks. */
const SILENT_PROBES = 3;

export class Connection implements PacketHandler {
  readonly #events: ConnectionEvents;
  readonly #parts: ConnectionParts;
  readonly #deadlines: Deadlines;
  /** By which the datagram came that is being read. */
  #cameBy: Path;
  #ecn = 0;
  #nowMs: number;

  /** `start` null: the dialling side. Throws where TLS cannot begin. */
  constructor(
    options: ConnectionOptions,
    events: ConnectionEvents,
    start: ServerStart | null,
    nowMs: number,
  ) {
    this.#events = events;
    this.#nowMs = nowMs;
    this.#parts = new ConnectionParts(options, events, start, this, nowMs);
    this.#deadlines = new Deadlines(this.#parts);
    this.#cameBy = this.#parts.paths.current;
  }

  /** The dialling side says its first bytes; to be flushed. */
  begin(): void {
    try {
      this.#parts.handshake.begin();
      this.#parts.establishment.beginEarly();
    } catch (error) {
      this.#fail(error);
    }
    this.#afterCall();
  }

  /** Of the dialling side: streams may be opened before the handshake is done. What they say may arrive twice. */
  get isEarly(): boolean {
    return this.#parts.establishment.isEarly;
  }

  get isClosed(): boolean {
    return this.#parts.end.isOver;
  }

  /** The first id by which the peer calls us. */
  get firstId(): Uint8Array {
    return this.#parts.ownIds.first;
  }

  /** Something of the peer has come that is authentic. */
  get isHeard(): boolean {
    return this.#parts.establishment.isHeard;
  }

  /** Where the peer is; null: the dialling side's owner knows. */
  get peer(): Endpoint | null {
    return this.#parts.paths.current.peer;
  }

  /** Milliseconds; 0: unknown. */
  get smoothedRttMs(): number {
    return this.#parts.recovery.rtt.hasSample ? this.#parts.recovery.rtt.smoothedMs : 0;
  }

  get statistics(): ConnectionStatistics {
    return this.#parts.statistics;
  }

  /** How often in a row the peer was asked for a sign of life without an answer. */
  get unansweredProbes(): number {
    return this.#parts.recovery.probes.count;
  }

  get probeMs(): number {
    return this.#parts.recovery.rtt.probeTimeoutMs;
  }

  /** As `QuicTls.exportKey`. */
  exportKey(label: Uint8Array, context: Uint8Array, size: number): Buffer {
    return this.#parts.handshake.tls.exportKey(label, context, size);
  }

  /**
   * Of the accepting side, once the client needs no more of TLS than its keys: they stay, and the library's object goes,
   * with the memory that it has for a handshake. `exportKey` throws from then on.
   */
  releaseTls(): void {
    this.#parts.handshake.release();
  }

  setCongestion(congestion: Congestion): void {
    congestion.setDatagramBytes(this.#parts.sender.mtu.bytes);
    this.#parts.recovery.congestion = congestion;
  }

  /** Null: the peer allows no more at the moment; see `whenAllowed`. */
  open(isBidi: boolean): QuicStream | null {
    const { isConnected, isEarly } = this.#parts.establishment;
    return (isConnected || isEarly) && !this.isClosed ? this.#parts.streams.open(isBidi) : null;
  }

  whenAllowed(isBidi: boolean, on: () => void): { cancel(): void } {
    return this.#parts.streams.whenAllowed(isBidi, on);
  }

  /** The peer may send so much ahead from now on, which is more than `maxData` of our numbers. */
  widen(windowBytes: number): void {
    if (!this.isClosed) this.#parts.streams.widen(windowBytes);
  }

  /** Streams that are open, of either kind. */
  get openStreams(): number {
    return this.#parts.streams.size;
  }

  /** Streams of both directions that are open. */
  get bidiStreams(): number {
    return this.#parts.streams.bidiCount;
  }

  /** The largest payload that `sendDatagram` takes. */
  get maxDatagramBytes(): number {
    const peer = Math.max(LEAST_DATAGRAM_FRAME, this.#parts.establishment.peer?.maxDatagramFrame ?? 0);
    return Math.min(peer - 3, this.#parts.sender.mtu.bytes - DATAGRAM_OVERHEAD);
  }

  /** Of one piece or two, which are copied. It is sent once, as soon as congestion control lets it, or dropped. */
  sendDatagram(payload: Uint8Array, rest: Uint8Array = NOTHING): void {
    if (this.isClosed) return;
    const { datagrams, recovery } = this.#parts;
    datagrams.push(payload, rest, recovery.congestion.pacingRate);
    this.#events.wake();
  }

  /**
   * A datagram of the peer, which may be anybody's. Its memory is lent until the call returns. `from` null: the path of the
   * dialling side. `ecn`: as of `Datagram`.
   */
  receive(datagram: Uint8Array, nowMs: number, from: Endpoint | null = null, ecn = 0): void {
    this.#nowMs = nowMs;
    this.#ecn = ecn;
    if (this.#parts.end.isOver) return this.#parts.end.answer(this.#parts.paths.current);
    this.#cameBy = this.#parts.paths.of(from);
    this.#cameBy.receivedBytes += datagram.length;
    try {
      this.#parts.receiver.receive(datagram, nowMs);
      if (this.#parts.end.failure !== undefined) this.#parts.streams.handOver();
    } catch (error) {
      this.#fail(error);
    }
    this.#afterCall();
  }

  onPacket(space: PacketSpace, { source, isEarly }: PacketOrigin, number: number, frames: WireReader): void {
    const { controls, dispatch, end, establishment, idle, isServer, migration, recovery } = this.#parts;
    if (end.isOver) return;
    if (source !== null) establishment.adopt(source);
    const isNewest = number > space.received.largest;
    const { isEliciting, isProbing, isAnswerable } = dispatch.read(space, frames, this.#nowMs, isEarly);
    // Where nothing will be said in answer, waiting for it costs a timer and a turn: a PING is acknowledged at once.
    const isUrgent = space.id !== APPLICATION_SPACE || !isAnswerable;
    if (!space.isDropped) space.received.add(number, isEliciting, isUrgent, this.#nowMs, this.#ecn);
    idle.onReceived(this.#nowMs);
    if (space.id === HANDSHAKE_SPACE && isServer) {
      this.#cameBy.isValidated = true;
      recovery.drop(this.#parts.spaces[INITIAL_SPACE]);
    }
    const mayMove = isServer && recovery.probes.isConfirmed && space.id === APPLICATION_SPACE;
    migration.onPacket(this.#cameBy, mayMove && isNewest && !isProbing, this.#nowMs);
    if (controls.isOverfull) throw new QuicFault(PROTOCOL_VIOLATION, "more to answer than can be said");
  }

  onRetry(header: PacketHeader, packet: Uint8Array): void {
    this.#parts.establishment.onRetry(header, packet);
  }

  onVersions(header: PacketHeader, packet: Uint8Array): void {
    this.#parts.establishment.onVersions(header, packet);
  }

  onUnreadable(datagram: Uint8Array): void {
    if (this.#parts.peerIds.isReset(datagram))
      this.#parts.end.drain(new Error("the peer has lost the connection"));
  }

  /** Our own update of the keys, as the peer may do its. */
  updateKeys(): void {
    this.#parts.keys.update(this.#nowMs, this.probeMs);
  }

  /** Gives its streams what has come, and sends all that may go. True: there is more; others are to have their turn before it is called again. */
  flush(nowMs: number): boolean {
    this.#nowMs = nowMs;
    if (this.#parts.end.isOver) return false;
    const before = this.#parts.recovery.inFlight;
    let hasMore = false;
    try {
      this.#parts.streams.handOver();
      hasMore = this.#parts.sender.flush(nowMs);
    } catch (error) {
      this.#fail(error);
    }
    this.#afterCall();
    if (this.#parts.recovery.inFlight > before) this.#parts.idle.onAsked(nowMs);
    return hasMore;
  }

  /** When `onTimer` is to be called at the latest; Infinity: never. */
  get deadlineMs(): number {
    return this.#parts.end.isOver ? Infinity : this.#deadlines.firstMs;
  }

  /** Something is due; to be flushed afterwards. */
  onTimer(nowMs: number): void {
    this.#nowMs = nowMs;
    const { end, establishment, sender, migration, recovery, spaces } = this.#parts;
    const { mustProbe, idleMs, keepAliveMs } = this.#deadlines;
    if (end.isOver) return;
    if (nowMs >= idleMs)
      return this.#finish(
        new Error(establishment.isConnected ? "the peer is silent" : "no answer to the handshake"),
      );
    if (nowMs >= keepAliveMs) sender.wantsPing = true;
    migration.onTimer(nowMs);
    if (this.#deadlines.recoveryMs > nowMs) return;
    recovery.onTimeout(spaces, mustProbe, nowMs);
    if (recovery.probes.count === SILENT_PROBES) sender.onSilence();
  }

  /** Says the end to the peer, at once. `error` null: a good one. */
  close(code: number, reason: string, error: Error | null = null): void {
    if (this.#parts.end.isOver) return;
    const isKnown = this.#parts.establishment.isConnected;
    this.#parts.end.say(this.#parts.sender, { isApplication: true, isKnown, code, reason });
    this.#finish(error);
  }

  /** What breaks a rule ends this connection, and no other. */
  #fail(error: unknown): void {
    if (this.#parts.end.isOver) return;
    const code = error instanceof QuicFault ? error.transportCode : INTERNAL_ERROR;
    this.#parts.end.say(this.#parts.sender, { isApplication: false, isKnown: true, code, reason: "" });
    this.#finish(asError(error instanceof HandshakeFailed ? error.reason : error));
  }

  /** The end may have been noticed within a call that had to go on. */
  #afterCall(): void {
    if (this.#parts.end.failure !== undefined) this.#finish(this.#parts.end.failure);
  }

  #finish(error: Error | null): void {
    if (this.#parts.end.isFinished) return;
    this.#parts.end.finish();
    this.#parts.release(error ?? new Error("the connection was closed"));
    this.#events.closed(error);
  }

  /** Ends it without a word: nothing of the peer was authentic. */
  discard(): void {
    this.#finish(null);
  }

  /** No datagram can reach it any more: its ids are free. */
  forget(): void {
    this.#parts.ownIds.clear();
  }
}
