/** The parts of one connection. Each is given this whole, and uses what it says that it needs. */
import type { QuicCiphers } from "#platform/quic.ts";
import { ConnectionEnd, PeerClosed } from "./connection-end.ts";
import { OwnIds, PeerIds } from "./connection-ids.ts";
import {
  type ConnectionEvents,
  type ConnectionOptions,
  OWN_NUMBERS,
  type ServerStart,
  type ConnectionStatistics,
} from "./connection-options.ts";
import { ControlQueue } from "./control-queue.ts";
import { DatagramQueue } from "./datagram-queue.ts";
import { Establishment, type EstablishmentParts, firstDestination } from "./establishment.ts";
import { FrameDispatch, type FrameDispatchOptions } from "./frame-dispatch.ts";
import { Handshake, type HandshakeOptions } from "./handshake.ts";
import { IdleTimer } from "./idle-timer.ts";
import { Migration, type MigrationOptions } from "./migration.ts";
import { type PacketHandler, PacketReceiver, type PacketReceiverOptions } from "./packet-receiver.ts";
import { PacketSender, type PacketSenderOptions } from "./packet-sender.ts";
import { Path } from "./path.ts";
import { Paths } from "./paths.ts";
import { ApplicationKeys } from "./protection/application-keys.ts";
import { APPLICATION_SPACE, HANDSHAKE_SPACE, INITIAL_SPACE, PacketSpace } from "./recovery/packet-space.ts";
import { Recovery } from "./recovery/recovery.ts";
import { StreamSet } from "./streams/stream-set.ts";
import type { OpenQuicTls } from "./tls.ts";
import { encodeTransportParameters, UNSAID_NUMBERS } from "./wire/transport-parameters.ts";

const LEAST_SEND_BUFFER = 128 * 1024;
const MOST_SEND_BUFFER = 8 * 1024 * 1024;
const DEFAULT_DATAGRAM_BYTES = 1452;

type Needed = HandshakeOptions &
  PacketSenderOptions &
  PacketReceiverOptions &
  MigrationOptions &
  EstablishmentParts &
  FrameDispatchOptions;

export class ConnectionParts implements Needed {
  readonly isServer: boolean;
  readonly start: ServerStart | null;
  readonly events: ConnectionEvents;
  readonly handler: PacketHandler;
  readonly ciphers: QuicCiphers;
  readonly openTls: OpenQuicTls;
  readonly mostDatagramBytes: number;
  readonly original: Uint8Array;
  readonly spaces = [
    new PacketSpace(INITIAL_SPACE),
    new PacketSpace(HANDSHAKE_SPACE),
    new PacketSpace(APPLICATION_SPACE),
  ] as const;
  readonly controls = new ControlQueue();
  readonly datagrams = new DatagramQueue();
  readonly keys: ApplicationKeys;
  readonly peerIds: PeerIds;
  readonly ownIds: OwnIds;
  readonly end: ConnectionEnd;
  readonly idle: IdleTimer;
  readonly paths: Paths;
  readonly streams: StreamSet;
  readonly recovery: Recovery;
  readonly handshake: Handshake;
  readonly sender: PacketSender;
  readonly migration: Migration;
  readonly receiver: PacketReceiver;
  readonly establishment: Establishment;
  readonly dispatch: FrameDispatch;

  /** `start` null: the dialling side. Throws where TLS cannot begin. */
  constructor(
    options: ConnectionOptions,
    events: ConnectionEvents,
    start: ServerStart | null,
    handler: PacketHandler,
    nowMs: number,
  ) {
    const numbers = { ...UNSAID_NUMBERS, ...OWN_NUMBERS, ...options.numbers };
    const { usesEcn = false } = options;
    this.isServer = start !== null;
    this.start = start;
    this.events = events;
    this.handler = handler;
    this.ciphers = options.ciphers;
    this.openTls = options.openTls;
    this.mostDatagramBytes = options.mostDatagramBytes ?? DEFAULT_DATAGRAM_BYTES;
    this.original = firstDestination(start);
    this.keys = new ApplicationKeys(options.ciphers);
    this.peerIds = new PeerIds(this.controls, start?.client ?? this.original);
    this.ownIds = new OwnIds(
      this.controls,
      start?.resetTokenOf ?? null,
      (id, isGiven) => events.ownId(id, isGiven),
      start?.makeId,
    );
    this.end = new ConnectionEnd(events);
    this.idle = new IdleTimer(numbers.idleTimeoutMs, options.keepAliveMs ?? 0, nowMs);
    this.paths = new Paths(new Path(start?.from ?? null, start?.isValidated ?? true, usesEcn), usesEcn);
    this.streams = new StreamSet({
      isServer: this.isServer,
      own: numbers,
      abortCode: options.abortCode ?? 0,
      controls: this.controls,
      onStream: (stream) => events.stream(stream),
      onIdle: () => events.idle(),
      wake: () => events.wake(),
      sendBufferBytes: () => this.#sendBufferBytes(),
    });
    this.recovery = new Recovery(options.congestion, this.streams, this.paths.current.marking);
    this.handshake = new Handshake(this, parametersOf(options, start, this.ownIds.first));
    this.sender = new PacketSender(this, this.paths.current);
    this.migration = new Migration(this);
    this.receiver = new PacketReceiver(this);
    this.establishment = new Establishment(this);
    this.dispatch = new FrameDispatch(this);
  }

  #sendBufferBytes(): number {
    return Math.min(MOST_SEND_BUFFER, Math.max(LEAST_SEND_BUFFER, 2 * this.recovery.congestion.windowBytes));
  }

  get ownId(): Uint8Array {
    return this.ownIds.first;
  }

  wake(): void {
    this.events.wake();
  }

  onMoved(): void {
    this.events.moved();
  }

  onHandshakeSent(): void {
    this.recovery.drop(this.spaces[INITIAL_SPACE]);
  }

  onEarly(): void {
    this.events.early?.(this.handshake.tls.alpn());
  }

  onConnected(): void {
    this.events.connected(this.handshake.tls.alpn());
    this.receiver.onHandshakeDone();
  }

  onCrypto(space: PacketSpace, offset: number, bytes: Uint8Array): void {
    this.establishment.onCrypto(space, offset, bytes);
  }

  onAcked(space: PacketSpace): void {
    if (space.id === APPLICATION_SPACE) this.keys.allowUpdate();
  }

  onHandshakeDone(): void {
    this.establishment.confirm();
  }

  onPathChallenge(data: Uint8Array): void {
    this.migration.onChallenge(data);
  }

  onPathResponse(data: Uint8Array): void {
    this.paths.onAnswer(data);
  }

  onDatagram(payload: Uint8Array): void {
    this.events.datagram(payload);
  }

  onClose(isApplication: boolean, code: number, reason: string): void {
    this.end.drain(new PeerClosed(isApplication, code, reason));
  }

  get statistics(): ConnectionStatistics {
    return {
      lostPackets: this.recovery.lostPackets,
      keyUpdates: this.keys.updates,
      datagramBytes: this.sender.mtu.bytes,
      isMarking: this.paths.current.marking.isCapable,
      congestionMarks: this.recovery.congestionMarks,
      isResumed: this.handshake.isResumed,
      isEarlyAccepted: this.handshake.isEarlyAccepted,
    };
  }

  /** No more is sent or read; what waits for it fails with `error`. */
  release(error: Error): void {
    this.streams.abandon(error);
    for (const space of this.spaces) space.drop();
    this.keys[Symbol.dispose]();
    this.handshake[Symbol.dispose]();
  }
}

/** What we say of ourselves within TLS. */
function parametersOf(
  options: ConnectionOptions,
  start: ServerStart | null,
  initialSource: Uint8Array,
): Uint8Array {
  const own = { ...OWN_NUMBERS, ...options.numbers, initialSource };
  if (start === null) return encodeTransportParameters(own);
  const { original: originalDestination, retrySource, resetTokenOf } = start;
  const resetToken = resetTokenOf(initialSource);
  return encodeTransportParameters({ ...own, originalDestination, retrySource, resetToken });
}
