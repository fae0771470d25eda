/** Seals and opens the datagrams of one association on the client's side. */
import { randomBytes, randomInt } from "node:crypto";
import { ProtocolError } from "#core/errors.ts";
import type { Datagram } from "#core/session.ts";
import { decodeSocksAddress, encodeSocksAddress } from "#net/address/socks-address.ts";
import type { Aead } from "#protocols/crypto/aead.ts";
import { PacketWindow } from "#protocols/crypto/packet-window.ts";
import type { Method } from "./methods.ts";
import { openPacket004, sealPacket004 } from "./packet004.ts";
import {
  bodyAead,
  decodeBody,
  encodeBody,
  openPacket022,
  sealPacket022,
  SESSION_ID_BYTES,
} from "./packet022.ts";
import { MAX_PADDING } from "./sip022.ts";
import { itemAt, lastOf } from "#lib/at.ts";

export interface ClientPackets {
  seal(item: Datagram): Buffer;
  /** Null: drop it. */
  open(packet: Buffer): Datagram | null;
}

/** `keys` as in `preSharedKeys`; of the older editions the master key alone. */
export function clientPackets(
  method: Method,
  keys: readonly Uint8Array[],
  nowMs: () => number,
): ClientPackets {
  if (method.edition === "2022") return new Packets022(method, keys, nowMs);
  const master = itemAt(keys, 0);
  return {
    seal({ payload, destination }) {
      return sealPacket004(method, master, Buffer.concat([encodeSocksAddress(destination), payload]));
    },
    open: (packet) => addressed(openPacket004(method, master, packet)),
  };
}

/** Address and data; null for what is none. */
export function addressed(body: Buffer | null): Datagram | null {
  if (body === null) return null;
  try {
    const address = decodeSocksAddress(body);
    return address && { payload: body.subarray(address.next), destination: address.destination };
  } catch (error) {
    if (error instanceof ProtocolError) return null;
    throw error;
  }
}

/** Only DNS messages are padded up to this length: they are short and few, and their sizes give the name away. */
export function packetPadding(port: number): Buffer {
  return Buffer.alloc(port === 53 ? randomInt(1, MAX_PADDING + 1) : 0);
}

interface ServerSession {
  readonly id: string;
  readonly aead: Aead;
  readonly window: PacketWindow;
  seenAtMs: number;
}

/** A restarted server uses another session id; packets of the former one are accepted for so long. */
const OLD_SESSION_MS = 60_000;

class Packets022 implements ClientPackets {
  readonly #method: Method;
  readonly #keys: readonly Uint8Array[];
  readonly #psk: Uint8Array;
  readonly #sessionId = randomBytes(SESSION_ID_BYTES);
  readonly #aead: Aead;
  readonly #nowMs: () => number;
  #nextPacketId = 0n;
  #servers: ServerSession[] = [];

  constructor(method: Method, keys: readonly Uint8Array[], nowMs: () => number) {
    this.#nowMs = nowMs;
    this.#method = method;
    this.#keys = keys;
    this.#psk = lastOf(keys);
    this.#aead = bodyAead(method, this.#psk, this.#sessionId);
  }

  seal({ payload, destination }: Datagram): Buffer {
    const header = Buffer.concat([this.#sessionId, Buffer.alloc(8)]);
    header.writeBigUInt64BE(this.#nextPacketId++, SESSION_ID_BYTES);
    const padding = packetPadding(destination.port);
    const body = encodeBody({ nowMs: this.#nowMs(), clientSession: null, padding, destination, payload });
    return sealPacket022(this.#method, this.#keys, this.#aead, header, body);
  }

  open(packet: Buffer): Datagram | null {
    let session: ServerSession | null = null;
    const find = (id: string, bytes: Buffer) => (session = this.#find(id, bytes));
    const opened = openPacket022(
      this.#method,
      this.#psk,
      false,
      (header) => find(header.sessionId, header.bytes).aead,
      packet,
    );
    if (opened === null) return null;
    const { header, body } = opened;
    session ??= this.#find(header.sessionId, header.bytes);
    try {
      const item = decodeBody(body, this.#sessionId, this.#nowMs());
      return this.#admit(session, header.packetId) ? item : null;
    } catch (error) {
      if (error instanceof ProtocolError) return null;
      throw error;
    }
  }

  /** A session that is not known yet is made, and kept once a packet of it proved good. */
  #find(id: string, header: Buffer): ServerSession {
    const known = this.#servers.find((session) => session.id === id);
    if (known !== undefined) return known;
    const aead = bodyAead(this.#method, this.#psk, header.subarray(0, SESSION_ID_BYTES));
    return { id, aead, window: new PacketWindow(), seenAtMs: 0 };
  }

  #admit(session: ServerSession, packetId: bigint): boolean {
    const nowMs = Date.now();
    if (!this.#servers.includes(session)) {
      const others = this.#servers.filter(({ seenAtMs }) => nowMs - seenAtMs < OLD_SESSION_MS);
      if (others.length > 1) return false; // two restarts within a minute are a replay
      this.#servers = [...others, session];
    }
    if (!session.window.accept(packetId)) return false;
    session.seenAtMs = nowMs;
    return true;
  }
}
