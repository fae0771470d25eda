/** Pings through a TUN: rules decide; DIRECT ones go out by a socket of ours, most others are answered here. */
import { randomUUID } from "node:crypto";
import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { Metadata } from "#core/session.ts";
import { ipFromBytes, ANY_V4 } from "#net/address/ip.ts";
import { type EchoSocket, openEchoSocket, PACKET_AT } from "#platform/tun.ts";
import type { SocketOptions } from "#platform/socket-maker.ts";
import type { Packet } from "#net/packet/packet.ts";
import type { PacketWriter } from "./packet-writer.ts";
import type { TunSettings } from "./settings.ts";
import { byteAt } from "#lib/at.ts";

/** What becomes of a ping: sent on, answered in the place of its destination, refused, or nothing. */
export type EchoFate = "forward" | "answer" | "refuse" | "drop";

export interface EchoEnv {
  /** Asks the rules. Never rejects. */
  readonly decideEcho: (metadata: Metadata) => Promise<EchoFate>;
  /** What sockets that leave must have now; null: nothing can leave. */
  readonly socketOptions: () => SocketOptions | null;
  readonly log: Log;
}

interface EchoContext extends EchoEnv {
  readonly settings: TunSettings;
  readonly writer: PacketWriter;
}

/** Pings that wait for a decision; at the bound one more is dropped, as a network would. */
const MOST_DECIDING = 1024;
/** Requests on their way; each has a sequence number of its own. */
const MOST_WAITING = 65_536;
const ECHO_REPLY = { 4: 0, 6: 129 } as const;
/** A socket with other options is opened no sooner than this after one that could not be opened. */
const REOPEN_MS = 5_000;

interface Ping {
  readonly family: 4 | 6;
  readonly client: Uint8Array;
  readonly destination: Uint8Array;
  /** The whole IP packet, and the ICMP message in it. */
  readonly packet: Buffer;
  readonly message: Buffer;
}

interface Waiting extends Pick<Ping, "client" | "destination"> {
  /** Identifier and sequence number, as the client wrote them. */
  readonly marks: Buffer;
  readonly sinceMs: number;
}

export class Echoes {
  readonly #slot: EchoContext;
  readonly #forwarders: Readonly<Record<4 | 6, Forwarder>>;
  #deciding = 0;

  constructor(slot: EchoContext) {
    this.#slot = slot;
    this.#forwarders = { 4: new Forwarder(4, slot), 6: new Forwarder(6, slot) };
  }

  /** Copies what it needs of the packet. */
  ask(packet: Packet): void {
    if (this.#deciding >= MOST_DECIDING) return;
    this.#deciding++;
    const ping = pingOf(packet);
    void this.#decide(ping).finally(() => this.#deciding--);
  }

  /** About once a second. */
  tick(): void {
    this.#forwarders[4].tick();
    this.#forwarders[6].tick();
  }

  close(): void {
    this.#forwarders[4].close();
    this.#forwarders[6].close();
  }

  async #decide(ping: Ping): Promise<void> {
    const { settings, decideEcho, writer } = this.#slot;
    const fate = settings.forwardsIcmp ? await decideEcho(this.#metadataOf(ping)) : "answer";
    if (fate === "drop") return;
    if (fate === "refuse") return writer.unreachableFrom(ping.destination, ping.client, ping.packet, "host");
    if (fate === "forward" && this.#forwarders[ping.family].send(ping)) return;
    const { family, message } = ping;
    message[0] = ECHO_REPLY[family];
    message[2] = message[3] = 0;
    writer.icmp(ping.destination, ping.client, message);
  }

  #metadataOf({ client, destination }: Ping): Metadata {
    const { name, ruleList, target } = this.#slot.settings;
    const source = { ip: ipFromBytes(client), port: 0 };
    const local = { ip: ANY_V4, port: 0 };
    return {
      id: randomUUID(),
      network: "icmp",
      source,
      destination: { host: null, ip: ipFromBytes(destination), port: 0 },
      inbound: { name, type: "Tun", user: null, local, ruleList, target },
      dscp: null,
      acceptedAtMs: Date.now(),
    };
  }
}

/** Requests of one family on their way, by the sequence number under which they left. */
class Forwarder {
  readonly #family: 4 | 6;
  readonly #slot: EchoContext;
  readonly #waiting = new Map<number, Waiting>();
  #sequence = 0;
  #socket: EchoSocket | null = null;
  #options: SocketOptions | null = null;
  #failedAtMs = -Infinity;

  constructor(family: 4 | 6, slot: EchoContext) {
    this.#family = family;
    this.#slot = slot;
  }

  /** False: it cannot be sent. */
  send({ client, destination, message }: Ping): boolean {
    const socket = this.#current();
    if (socket === null) return false;
    if (this.#waiting.size >= MOST_WAITING) return true; // dropped
    do this.#sequence = (this.#sequence + 1) & 0xffff;
    while (this.#waiting.has(this.#sequence));
    const marks = Buffer.from(message.subarray(4, 8));
    this.#waiting.set(this.#sequence, { client, destination, marks, sinceMs: performance.now() });
    const request = Buffer.from(message);
    request.writeUInt16BE(this.#sequence, 6);
    socket.send(destination, request);
    return true;
  }

  tick(): void {
    const oldest = performance.now() - this.#slot.settings.icmpTimeoutMs;
    for (const [sequence, { sinceMs }] of this.#waiting) {
      if (sinceMs > oldest) break; // in the order of their departure
      this.#waiting.delete(sequence);
    }
  }

  close(): void {
    this.#socket?.close();
    this.#socket = null;
    this.#failedAtMs = Infinity;
  }

  #current(): EchoSocket | null {
    const options = this.#slot.socketOptions();
    if (options === null || performance.now() - this.#failedAtMs < REOPEN_MS) return null;
    const same =
      options.routingMark === this.#options?.routingMark &&
      options.interfaceName === this.#options.interfaceName;
    if (this.#socket !== null && same) return this.#socket;
    this.#socket?.close();
    this.#socket = null;
    this.#options = options;
    try {
      this.#socket = openEchoSocket(this.#family, options, (source, message) => this.#reply(source, message));
    } catch (error) {
      this.#failedAtMs = performance.now();
      this.#slot.log.warning(`[TUN] pings are answered here, none can be sent: ${messageOf(error)}`);
    }
    return this.#socket;
  }

  #reply(source: Uint8Array, message: Uint8Array): void {
    const sequence = (byteAt(message, 6) << 8) | byteAt(message, 7);
    const waiting = this.#waiting.get(sequence);
    if (waiting === undefined || !waiting.destination.every((byte, at) => byte === source[at])) return;
    this.#waiting.delete(sequence);
    const reply = Buffer.from(message);
    reply.set(waiting.marks, 4);
    reply[2] = reply[3] = 0;
    this.#slot.writer.icmp(source, waiting.client, reply);
  }
}

function pingOf({ bytes, family, sourceAt, destinationAt, addressBytes, transportAt, end }: Packet): Ping {
  const packet = Buffer.from(bytes.subarray(PACKET_AT, end));
  return {
    family,
    client: bytes.slice(sourceAt, sourceAt + addressBytes),
    destination: bytes.slice(destinationAt, destinationAt + addressBytes),
    packet,
    message: packet.subarray(transportAt - PACKET_AT),
  };
}
