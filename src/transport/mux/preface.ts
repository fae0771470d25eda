/** How a multiplexed connection begins: sing-mux, as sing-box and its kin speak it. All integers big endian. */
import { randomInt } from "node:crypto";
import { ProtocolError } from "#core/errors.ts";
import type { Destination } from "#core/session.ts";
import type { ByteQueue } from "#lib/byte-queue.ts";
import { itemAt } from "#lib/at.ts";

/** What a protocol is asked for in place of a real target; its server catches the name. The port is part of the habit. */
export const MUX_DESTINATION: Destination = { host: "sp.mux.sing-box.arpa", ip: null, port: 444 };

export const MUX_PROTOCOLS = ["smux", "yamux", "h2mux"] as const;
export type MuxProtocol = (typeof MUX_PROTOCOLS)[number];

/** The multiplexing of v2ray and Xray, which has no preface: it is asked for by a name, or by a command of the protocol. */
export const MUX_COOL = "mux.cool";
export const MUX_COOL_DESTINATION: Destination = { host: "v1.mux.cool", ip: null, port: 9527 };

export interface Preface {
  readonly protocol: MuxProtocol;
  /** The first writes of both directions are padded. */
  readonly padding: boolean;
}

const MAX_VERSION = 1;

/** A random length that reveals nothing about the payload: 256 to 767 bytes. */
export function paddingSize(): number {
  return randomInt(256, 768);
}

// Preface: VERSION(1) PROTOCOL(1: 0 smux, 1 yamux, 2 h2mux), with version 1 PADDED(1) and, where that is 1, SIZE(2) PADDING.
export function encodePreface({ protocol, padding }: Preface): Buffer {
  const kind = MUX_PROTOCOLS.indexOf(protocol);
  if (!padding) return Buffer.from([0, kind]);
  const out = Buffer.alloc(5 + paddingSize());
  out.set([1, kind, 1]);
  out.writeUInt16BE(out.length - 5, 3);
  return out;
}

/** Takes the preface; null: more bytes are needed. Throws `ProtocolError`. */
export function takePreface(arrived: ByteQueue): Preface | null {
  const head = arrived.peekUpTo(5);
  const [version, kind, padded] = head;
  if (version !== undefined && version > MAX_VERSION)
    throw new ProtocolError(`mux version ${version}, expected 0 or 1`);
  if (kind !== undefined && kind >= MUX_PROTOCOLS.length)
    throw new ProtocolError(`mux protocol ${kind}, expected 0 (smux), 1 (yamux) or 2 (h2mux)`);
  if (version === undefined || kind === undefined) return null;
  const protocol = itemAt(MUX_PROTOCOLS, kind);
  if (version === 0) return taken(arrived, 2, { protocol, padding: false });
  if (padded === undefined) return null;
  if (padded > 1) throw new ProtocolError(`a mux padding mark of ${padded}, expected 0 or 1`);
  if (padded === 0) return taken(arrived, 3, { protocol, padding: false });
  if (head.length < 5) return null;
  return taken(arrived, 5 + head.readUInt16BE(3), { protocol, padding: true });
}

function taken(arrived: ByteQueue, size: number, preface: Preface): Preface | null {
  return arrived.take(size) === null ? null : preface;
}
