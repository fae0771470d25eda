/**
 * How a connection comes about (RFC 9000 §7 and §17.2): the ids that each side used first, Retry and versions, the
 * handshake's end and its confirmation.
 */
import { randomBytes } from "node:crypto";
import type { ConnectionEnd } from "./connection-end.ts";
import type { OwnIds, PeerIds } from "./connection-ids.ts";
import type { ServerStart } from "./connection-options.ts";
import type { ControlQueue } from "./control-queue.ts";
import type { Handshake } from "./handshake.ts";
import type { IdleTimer } from "./idle-timer.ts";
import type { PacketSender } from "./packet-sender.ts";
import type { ApplicationKeys } from "./protection/application-keys.ts";
import { isRetryAuthentic, RETRY_TAG_BYTES } from "./protection/retry-tag.ts";
import {
  APPLICATION_SPACE,
  HANDSHAKE_SPACE,
  INITIAL_SPACE,
  type PacketSpace,
} from "./recovery/packet-space.ts";
import type { Recovery } from "./recovery/recovery.ts";
import type { StreamSet } from "./streams/stream-set.ts";
import { FRAME } from "./wire/frames.ts";
import { type PacketHeader, readVersions, VERSION_1 } from "./wire/header.ts";
import { decodeTransportParameters, type TransportParameters } from "./wire/transport-parameters.ts";

const FIRST_ID_BYTES = 8;

/** The destination of a client's first Initial, which it invents. */
export function firstDestination(start: ServerStart | null): Uint8Array {
  return start?.original ?? new Uint8Array(randomBytes(FIRST_ID_BYTES));
}

export interface EstablishmentParts {
  /** Null: the dialling side. */
  readonly start: ServerStart | null;
  /** Of `firstDestination`. */
  readonly original: Uint8Array;
  readonly spaces: readonly PacketSpace[];
  readonly keys: ApplicationKeys;
  readonly controls: ControlQueue;
  readonly handshake: Handshake;
  readonly recovery: Recovery;
  readonly peerIds: PeerIds;
  readonly ownIds: OwnIds;
  readonly streams: StreamSet;
  readonly sender: PacketSender;
  readonly idle: IdleTimer;
  readonly end: ConnectionEnd;
  wake(): void;
  /** Of the accepting side: the client has said something before the handshake is done. */
  onEarly(): void;
  onConnected(): void;
}

export class Establishment {
  readonly #parts: EstablishmentParts;
  readonly #isServer: boolean;
  #retrySource: Uint8Array | null;
  /** The peer's own id, as its first authentic packet has it; null: none came. */
  #peerSource: Uint8Array | null = null;
  /** Null: the handshake is not done. */
  #peer: TransportParameters | null = null;
  /** Streams are read, or may be opened, though the handshake is not done (RFC 9001 §4.6). */
  isEarly = false;

  constructor(parts: EstablishmentParts) {
    this.#parts = parts;
    this.#isServer = parts.start !== null;
    this.#retrySource = parts.start?.retrySource ?? null;
    parts.handshake.setInitialKeys(this.#retrySource ?? parts.original);
  }

  /** What the peer said of itself; null: the handshake is not done. */
  get peer(): TransportParameters | null {
    return this.#peer;
  }

  get isConnected(): boolean {
    return this.#peer !== null;
  }

  /** Something of the peer has come that is authentic. */
  get isHeard(): boolean {
    return this.#peerSource !== null;
  }

  /** Of an authentic packet: the first one's source is the peer's id. */
  adopt(source: Uint8Array): void {
    if (this.#peerSource !== null) return;
    this.#peerSource = new Uint8Array(source);
    if (!this.#isServer) this.#parts.peerIds.adopt(this.#peerSource);
  }

  /** Of the dialling side, behind its first bytes: what the server's limits were is taken for what they are. */
  beginEarly(): void {
    const { handshake, streams } = this.#parts;
    const { remembered } = handshake.tls;
    if (!handshake.hasEarlyKeys || remembered === null) return;
    this.isEarly = true;
    streams.begin(decodeTransportParameters(remembered, "server"));
  }

  #acceptEarly(): void {
    const { handshake, streams } = this.#parts;
    if (!this.#isServer || this.isEarly || !handshake.hasEarlyKeys || handshake.peer === null) return;
    this.isEarly = true;
    streams.begin(handshake.peer);
    this.#parts.onEarly();
  }

  onRetry(header: PacketHeader, packet: Uint8Array): void {
    const { original, ownIds, peerIds, sender, handshake, recovery, spaces } = this.#parts;
    if (!this.#isAwaited(header, ownIds) || !isRetryAuthentic(packet, original)) return;
    this.#retrySource = new Uint8Array(header.source);
    peerIds.adopt(this.#retrySource);
    sender.token = new Uint8Array(packet.subarray(header.numberAt - header.start, -RETRY_TAG_BYTES));
    handshake.setInitialKeys(this.#retrySource);
    for (const space of spaces) if (space.id !== HANDSHAKE_SPACE) recovery.sayAllAgain(space);
    this.#parts.wake();
  }

  onVersions(header: PacketHeader, packet: Uint8Array): void {
    const { ownIds, end } = this.#parts;
    if (!this.#isAwaited(header, ownIds)) return;
    if (readVersions(packet.subarray(header.numberAt - header.start)).includes(VERSION_1)) return;
    end.drain(new Error("the server does not speak version 1 of QUIC"));
  }

  /** For a client, once, and before anything else of the server. */
  #isAwaited({ destination }: PacketHeader, ownIds: OwnIds): boolean {
    const isLate = this.#peerSource !== null || this.#retrySource !== null;
    return !this.#isServer && !isLate && ownIds.has(destination);
  }

  onCrypto(space: PacketSpace, offset: number, bytes: Uint8Array): void {
    const { handshake } = this.#parts;
    handshake.read(space, offset, bytes);
    if (this.#peer !== null) return;
    if (handshake.tls.isDone) this.#connect();
    else this.#acceptEarly();
  }

  #connect(): void {
    const { handshake, original, peerIds, ownIds, recovery, idle, streams, controls, spaces } = this.#parts;
    const peer = handshake.finish({
      initialSource: this.#peerSource ?? new Uint8Array(0),
      original: this.#isServer ? null : original,
      retrySource: this.#retrySource,
    });
    this.#peer = peer;
    if (peer.resetToken !== null) peerIds.setResetToken(peer.resetToken);
    recovery.probes.peerMaxAckDelayMs = peer.maxAckDelayMs;
    recovery.peerAckDelayExponent = peer.ackDelayExponent;
    idle.limit(peer.idleTimeoutMs);
    const isRefused = this.isEarly && !this.#isServer && !handshake.isEarlyAccepted;
    for (const space of spaces) if (isRefused && space.id === APPLICATION_SPACE) recovery.sayAllAgain(space);
    streams.begin(peer);
    ownIds.fill(peer.activeConnectionIds);
    if (this.#isServer) {
      controls.push(controls.make(1, (out) => out.byte(FRAME.handshakeDone)));
      this.confirm();
    }
    this.#parts.onConnected();
  }

  /** Both sides know that the handshake is done (RFC 9001 §4.1.2). */
  confirm(): void {
    const { recovery, keys, spaces, sender } = this.#parts;
    if (recovery.probes.isConfirmed || this.#peer === null) return;
    recovery.probes.isConfirmed = true;
    keys.allowUpdate();
    for (const space of spaces)
      if (space.id === INITIAL_SPACE || space.id === HANDSHAKE_SPACE) recovery.drop(space);
    sender.mtu.start(this.#peer.maxUdpPayload);
  }
}
