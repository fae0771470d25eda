/**
 * VLESS headers. Request: VER(1)=0 ID(16) A(1) ADDONS(A) CMD(1) [PORT(2, big endian) ATYP(1) ADDR(4 | 1+n | 16)]
 * payload; the address is absent for MUX. Answer: VER(1)=0 B(1) ADDONS(B) payload.
 */
import { DialError, ProtocolError } from "#core/errors.ts";
import type { Destination } from "#core/session.ts";
import { bytesOfIp, ipFromBytes, toDestination } from "#net/address/ip.ts";
import { decodeName } from "#net/address/socks-address.ts";

export const VERSION = 0;
export const COMMAND_TCP = 1;
export const COMMAND_UDP = 2;
export const COMMAND_MUX = 3;
export const VISION = "xtls-rprx-vision";
export const ID_BYTES = 16;

const ATYP_V4 = 1; // not the numbers of SOCKS
const ATYP_NAME = 2;
const ATYP_V6 = 3;
const ADDONS_FLOW = 0x0a; // protobuf field 1, length-delimited

export interface VlessRequest {
  readonly flow: string;
  readonly command: number;
  /** Null for MUX. */
  readonly destination: Destination | null;
}

/** PORT ATYP ADDR. Throws `DialError` for a name that the field cannot hold. */
export function encodeAddress({ host, ip, port }: Destination, prefer: "host" | "ip" = "host"): Buffer {
  if (ip !== null && (host === null || prefer === "ip")) {
    const bytes = bytesOfIp(ip);
    return addressOf(port, bytes.length === 4 ? ATYP_V4 : ATYP_V6, bytes);
  }
  const name = Buffer.from(host ?? "");
  if (name.length < 1 || name.length > 255)
    throw new DialError("failed", `a name of 1 to 255 bytes is needed, this one has ${name.length}`);
  return addressOf(port, ATYP_NAME, Buffer.concat([Buffer.from([name.length]), name]));
}

function addressOf(port: number, type: number, body: Uint8Array): Buffer {
  const out = Buffer.allocUnsafe(3 + body.length);
  out.writeUInt16BE(port, 0);
  out[2] = type;
  out.set(body, 3);
  return out;
}

/** Null: `bytes` ends before the address does. Throws `ProtocolError`. */
export function decodeAddress(bytes: Buffer, at: number): { destination: Destination; next: number } | null {
  if (bytes.length < at + 4) return null;
  const port = bytes.readUInt16BE(at);
  const type = bytes[at + 2];
  if (type === ATYP_NAME) {
    const end = at + 4 + (bytes[at + 3] as number);
    if (end === at + 4) throw new ProtocolError("an address with an empty name");
    if (bytes.length < end) return null;
    return { destination: toDestination(decodeName(bytes.subarray(at + 4, end)), port), next: end };
  }
  if (type !== ATYP_V4 && type !== ATYP_V6)
    throw new ProtocolError(`address type ${type}, expected 1, 2 or 3`);
  const end = at + 3 + (type === ATYP_V4 ? 4 : 16);
  if (bytes.length < end) return null;
  return { destination: { host: null, ip: ipFromBytes(bytes.subarray(at + 3, end)), port }, next: end };
}

export function encodeRequest(id: Buffer, { flow, command, destination }: VlessRequest): Buffer {
  const name = Buffer.from(flow);
  const addons = flow === "" ? [] : [Buffer.from([ADDONS_FLOW, name.length]), name];
  const size = addons.reduce((sum, part) => sum + part.length, 0);
  return Buffer.concat([
    Buffer.from([VERSION]),
    id,
    Buffer.from([size]),
    ...addons,
    Buffer.from([command]),
    ...(destination === null ? [] : [encodeAddress(destination)]),
  ]);
}

/** What follows version and id. Null: more is needed. Throws `ProtocolError`. */
export function decodeRequest(bytes: Buffer): { value: VlessRequest; size: number } | null {
  const addonsEnd = ID_BYTES + 2 + (bytes[ID_BYTES + 1] ?? 0);
  const command = bytes[addonsEnd];
  if (bytes.length <= addonsEnd || command === undefined) return null;
  const flow = decodeFlow(bytes.subarray(ID_BYTES + 2, addonsEnd));
  if (command === COMMAND_MUX) return { value: { flow, command, destination: null }, size: addonsEnd + 1 };
  if (command !== COMMAND_TCP && command !== COMMAND_UDP)
    throw new ProtocolError(`command ${command}, expected 1, 2 or 3`);
  const address = decodeAddress(bytes, addonsEnd + 1);
  if (address === null) return null;
  return { value: { flow, command, destination: address.destination }, size: address.next };
}

/** The flow in a protobuf message; unknown fields are passed over. */
function decodeFlow(addons: Buffer): string {
  let flow = "";
  for (let at = 0; at < addons.length;) {
    const tag = addons[at++] as number;
    const wireType = tag & 7;
    if (tag > 0x7f || (wireType !== 0 && wireType !== 2))
      throw new ProtocolError("addons of an unknown form");
    const [value, next] = varint(addons, at);
    at = next;
    if (wireType === 0) continue;
    if (at + value > addons.length) throw new ProtocolError("an addon longer than the addons");
    if (tag === ADDONS_FLOW) flow = addons.toString("utf8", at, at + value);
    at += value;
  }
  return flow;
}

function varint(bytes: Buffer, from: number): readonly [value: number, next: number] {
  let value = 0;
  for (let at = from; at < bytes.length && at < from + 5; at++) {
    const byte = bytes[at] as number;
    value += (byte & 0x7f) * 2 ** (7 * (at - from));
    if (byte < 0x80) return [value, at + 1];
  }
  throw new ProtocolError("a protobuf number without an end");
}

export const ANSWER = Buffer.from([VERSION, 0]);

/** Takes the answer's header from the front of a stream that may come in any pieces. */
export class AnswerStripper {
  /** Bytes of the header still to come; null: the length is not known yet. */
  #left: number | null = null;
  #seenVersion = false;

  get done(): boolean {
    return this.#left === 0;
  }

  /** What lies behind the header. Throws `ProtocolError` for another version. */
  strip(bytes: Buffer): Buffer {
    let at = 0;
    if (!this.#seenVersion && at < bytes.length) {
      if (bytes[at++] !== VERSION) throw new ProtocolError("the server does not speak VLESS version 0");
      this.#seenVersion = true;
    }
    if (this.#left === null && at < bytes.length) this.#left = bytes[at++] as number;
    const skipped = Math.min(this.#left ?? 0, bytes.length - at);
    if (this.#left !== null) this.#left -= skipped;
    return bytes.subarray(at + skipped);
  }
}
