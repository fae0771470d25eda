/** A tunnel: packets of its network, sealed for the peer that they belong to, as datagrams, and back. */
import { randomInt } from "node:crypto";
import { asDialError, DialError } from "#core/errors.ts";
import type { Ip } from "#core/session.ts";
import type { Cidr } from "#net/address/cidr.ts";
import { bytesOfIp } from "#net/address/ip.ts";
import { PACKET_AT as DEVICE_PACKET_AT } from "#platform/tun.ts";
import { addressIn, AllowedIps, packetBytes } from "./allowed-ips.ts";
import { type Partner, ReceivedInitiation } from "./handshake.ts";
import type { InnerNetwork } from "./inner-network.ts";
import { JoinedSegments } from "./joined-segments.ts";
import { IncomingMacs } from "./macs.ts";
import {
  answeredBy,
  COOKIE,
  DATA,
  INITIATION,
  LEAST_MESSAGE_BYTES,
  RESPONSE,
  senderOf,
  typeOf,
} from "./messages.ts";
import { PeerLink, type PeerWay } from "./peer-link.ts";
import { messageBytes, Peer, type PeerPort } from "./peer.ts";
import type { KeyPair } from "./primitives.ts";
import { Timestamps } from "./timestamp.ts";

/** Packets are sealed in steps of it, so that their lengths say less. */
const PADDING_BYTES = 16;
/** Between two initiations that are looked at: each costs an exchange of keys, also where it is a forged one. */
const INITIATION_INTERVAL_MS = 20;
/** Bytes 1 to 3 of every message, which are zero but for some servers. */
const RESERVED_BYTES = 3;

export interface PeerSettings {
  readonly partner: Partner;
  /** As in messages. */
  readonly label: string;
  readonly allowed: readonly Cidr[];
  readonly reserved: Uint8Array;
  readonly persistentMs: number;
}

/** Opens the way to a peer, by its number; asked again when it has led to nothing. Rejects with `DialError`. */
export type OpenWay = (peer: number) => Promise<PeerWay>;

export interface TunnelSettings {
  readonly own: KeyPair;
  readonly mtuBytes: number;
  readonly peers: readonly PeerSettings[];
  /** Unix time. */
  readonly nowMs: () => number;
}

export class Tunnel implements AsyncDisposable {
  readonly network: InnerNetwork;
  readonly #settings: TunnelSettings;
  readonly #incoming: IncomingMacs;
  readonly #peers: readonly Peer[];
  readonly #links = new Map<Peer, PeerLink>();
  readonly #byIndex = new Map<number, Peer>();
  readonly #allowed: AllowedIps<Peer>;
  readonly #segments: JoinedSegments;
  readonly #flush = (): void => {
    this.#flushes = false;
    this.#segments.flush();
  };
  #flushes = false;
  #initiatedMs = -Infinity;
  #openWay: OpenWay;

  /** Owns the network. */
  constructor(network: InnerNetwork, settings: TunnelSettings, openWay: OpenWay) {
    const { own, mtuBytes, peers, nowMs } = settings;
    this.network = network;
    this.#settings = settings;
    this.#openWay = openWay;
    this.#segments = new JoinedSegments(network.device);
    this.#incoming = new IncomingMacs(own.publicKey);
    const timestamps = new Timestamps(nowMs);
    const port: PeerPort = {
      own,
      nowMs: () => performance.now(),
      timestamp: () => timestamps.next(),
      send: (peer, message) => this.#links.get(peer)?.send(message),
      takeIndex: (peer) => this.#takeIndex(peer),
      giveUpIndex: (index) => void this.#byIndex.delete(index),
      onSilent: (peer) => this.#links.get(peer)?.reopen(),
    };
    const out = Buffer.alloc(messageBytes(mtuBytes));
    const made = peers.map((peer) => ({
      peer: new Peer(peer.partner, peer.label, peer.persistentMs, out, port),
      settings: peer,
    }));
    for (const [at, { peer, settings }] of made.entries())
      this.#links.set(peer, this.#link(peer, at, settings));
    this.#peers = made.map(({ peer }) => peer);
    this.#allowed = new AllowedIps(
      made.flatMap(({ peer, settings }) => settings.allowed.map((cidr) => ({ cidr, owner: peer }))),
    );
    network.device.receive(
      (length) => this.#leave(length),
      () => {},
    );
  }

  /** Resolves when packets to that address can go. Rejects with `DialError`. */
  async ready(ip: Ip, signal: AbortSignal): Promise<void> {
    const peer = this.#allowed.ownerOf(bytesOfIp(ip));
    if (peer === null) throw new DialError("unreachable", `${ip} is in no network of allowed-ips`);
    if (!peer.isReady) await peer.ready(signal);
  }

  /** From here on datagrams go by this way. */
  follow(openWay: OpenWay): void {
    this.#openWay = openWay;
    for (const link of this.#links.values()) link.reopen();
  }

  #link(peer: Peer, at: number, { label, reserved }: PeerSettings): PeerLink {
    const open = () => this.#openWay(at);
    const onFailure = (error: unknown) => peer.fail(asDialError(error, label));
    return new PeerLink(open, reserved, (message) => this.#take(message), onFailure);
  }

  #leave(length: number): void {
    const { bytes } = this.network.device.incoming;
    const peer = this.#allowed.ownerOf(addressIn(bytes, DEVICE_PACKET_AT, "destination"));
    if (peer === null) return;
    const padded = Math.ceil(length / PADDING_BYTES) * PADDING_BYTES;
    bytes.fill(0, DEVICE_PACKET_AT + length, DEVICE_PACKET_AT + padded);
    peer.send(bytes.subarray(DEVICE_PACKET_AT, DEVICE_PACKET_AT + padded));
  }

  /** A datagram from anywhere; its memory is lent, and may be changed. */
  #take(message: Buffer): void {
    if (message.length < LEAST_MESSAGE_BYTES) return;
    message.fill(0, 1, 1 + RESERVED_BYTES);
    const type = typeOf(message);
    if (type === DATA) this.#arrive(message);
    else if (type === RESPONSE && this.#incoming.isRight(message))
      this.#byIndex.get(answeredBy(message))?.takeResponse(answeredBy(message), message);
    else if (type === COOKIE) this.#byIndex.get(senderOf(message))?.takeCookie(message);
    else if (type === INITIATION && this.#incoming.isRight(message)) this.#takeInitiation(message);
  }

  #takeInitiation(message: Buffer): void {
    const nowMs = performance.now();
    if (nowMs - this.#initiatedMs < INITIATION_INTERVAL_MS) return;
    this.#initiatedMs = nowMs;
    const received = ReceivedInitiation.read(this.#settings.own, message);
    if (received === null) return;
    this.#peers.find(({ partner }) => partner.publicKey.equals(received.publicKey))?.takeInitiation(received);
  }

  #arrive(message: Buffer): void {
    const { bytes } = this.#segments.packet;
    const index = senderOf(message);
    const peer = this.#byIndex.get(index);
    if (peer === undefined) return;
    const filled = peer.receive(index, message, bytes, DEVICE_PACKET_AT);
    const length = packetBytes(bytes, DEVICE_PACKET_AT, filled);
    if (length < 0 || this.#allowed.ownerOf(addressIn(bytes, DEVICE_PACKET_AT, "source")) !== peer) return;
    this.#segments.add(length);
    if (this.#flushes) return;
    this.#flushes = true;
    queueMicrotask(this.#flush); // behind all datagrams that have come together
  }

  #takeIndex(peer: Peer): number {
    for (;;) {
      const index = randomInt(2 ** 32);
      if (this.#byIndex.has(index)) continue;
      this.#byIndex.set(index, peer);
      return index;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const peer of this.#peers) peer[Symbol.dispose]();
    this.network[Symbol.dispose]();
    await Promise.all([...this.#links.values()].map((link) => link[Symbol.asyncDispose]()));
  }
}
