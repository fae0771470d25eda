/** Netlink messages and their attributes as bytes (linux/netlink.h). Everything is in the machine's own order. */
import { endianness } from "node:os";
import { ProtocolError } from "#core/errors.ts";

export const NLM_F_REQUEST = 1;
export const NLM_F_ACK = 4;
export const NLM_F_DUMP = 0x300;
export const NLM_F_EXCL = 0x200;
export const NLM_F_CREATE = 0x400;
export const NLM_F_REPLACE = 0x100;

export const NLMSG_ERROR = 2;
export const NLMSG_DONE = 3;

export const LITTLE_ENDIAN: boolean = endianness() === "LE";
const HEADER_BYTES = 16;
const ATTRIBUTE_HEADER_BYTES = 4;
/** The remaining bits of the type are flags: nested, network byte order. */
const ATTRIBUTE_TYPE = 0x3fff;

export interface NetlinkMessage {
  readonly type: number;
  readonly flags: number;
  readonly sequence: number;
  /** A view of what was decoded. */
  readonly payload: Uint8Array;
}

const padded = (length: number): number => (length + 3) & ~3;
const viewOf = (bytes: Uint8Array): DataView =>
  new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

// nlmsghdr: LEN(4, with the header) TYPE(2) FLAGS(2) SEQ(4) PID(4), then the payload
export function encodeMessage({ type, flags, sequence, payload }: NetlinkMessage): Uint8Array {
  const bytes = new Uint8Array(HEADER_BYTES + payload.length);
  const view = viewOf(bytes);
  view.setUint32(0, bytes.length, LITTLE_ENDIAN);
  view.setUint16(4, type, LITTLE_ENDIAN);
  view.setUint16(6, flags, LITTLE_ENDIAN);
  view.setUint32(8, sequence, LITTLE_ENDIAN);
  bytes.set(payload, HEADER_BYTES);
  return bytes;
}

/** All messages of one datagram. Throws `ProtocolError` where a length does not fit. */
export function decodeMessages(bytes: Uint8Array): readonly NetlinkMessage[] {
  const view = viewOf(bytes);
  const messages: NetlinkMessage[] = [];
  for (let at = 0; at < bytes.length;) {
    if (at + HEADER_BYTES > bytes.length) throw new ProtocolError("netlink: a message without a header");
    const length = view.getUint32(at, LITTLE_ENDIAN);
    if (length < HEADER_BYTES || at + length > bytes.length)
      throw new ProtocolError(`netlink: a message of ${length} bytes where ${bytes.length - at} are left`);
    messages.push({
      type: view.getUint16(at + 4, LITTLE_ENDIAN),
      flags: view.getUint16(at + 6, LITTLE_ENDIAN),
      sequence: view.getUint32(at + 8, LITTLE_ENDIAN),
      payload: bytes.subarray(at + HEADER_BYTES, at + length),
    });
    at += padded(length);
  }
  return messages;
}

// nlattr: LEN(2, with the header) TYPE(2), then the value, then padding to a multiple of 4
export function attribute(type: number, value: Uint8Array): Uint8Array {
  const length = ATTRIBUTE_HEADER_BYTES + value.length;
  if (length > 0xffff) throw new RangeError(`netlink: an attribute of ${length} bytes`);
  const bytes = new Uint8Array(padded(length));
  const view = viewOf(bytes);
  view.setUint16(0, length, LITTLE_ENDIAN);
  view.setUint16(2, type, LITTLE_ENDIAN);
  bytes.set(value, ATTRIBUTE_HEADER_BYTES);
  return bytes;
}

export function attribute8(type: number, value: number): Uint8Array {
  return attribute(type, Uint8Array.of(value));
}

export function attribute32(type: number, value: number): Uint8Array {
  return attribute(type, new Uint8Array(Uint32Array.of(value).buffer));
}

/** With the closing zero byte. */
export function attributeText(type: number, value: string): Uint8Array {
  return attribute(type, Buffer.from(`${value}\0`));
}

export function attributeNested(type: number, parts: readonly Uint8Array[]): Uint8Array {
  return attribute(type, Buffer.concat(parts));
}

/** Attributes by type; of a repeated type the last one counts. Throws `ProtocolError` when a length does not fit. */
export function readAttributes(bytes: Uint8Array): ReadonlyMap<number, Uint8Array> {
  const view = viewOf(bytes);
  const found = new Map<number, Uint8Array>();
  for (let at = 0; at < bytes.length;) {
    if (at + ATTRIBUTE_HEADER_BYTES > bytes.length)
      throw new ProtocolError("netlink: an attribute without a header");
    const length = view.getUint16(at, LITTLE_ENDIAN);
    if (length < ATTRIBUTE_HEADER_BYTES || at + length > bytes.length)
      throw new ProtocolError(`netlink: an attribute of ${length} bytes where ${bytes.length - at} are left`);
    const type = view.getUint16(at + 2, LITTLE_ENDIAN) & ATTRIBUTE_TYPE;
    found.set(type, bytes.subarray(at + ATTRIBUTE_HEADER_BYTES, at + length));
    at += padded(length);
  }
  return found;
}

/** Attributes behind a fixed structure of `headerBytes`. Throws `ProtocolError` where the structure is cut. */
export function attributesBehind(
  payload: Uint8Array,
  headerBytes: number,
  what: string,
): ReadonlyMap<number, Uint8Array> {
  if (payload.length < headerBytes)
    throw new ProtocolError(`netlink: ${what} of ${payload.length} bytes, ${headerBytes} are the least`);
  return readAttributes(payload.subarray(headerBytes));
}

/** Null where it is shorter than a number. */
export function uint32Of(value: Uint8Array | undefined): number | null {
  return value === undefined || value.length < 4 ? null : viewOf(value).getUint32(0, LITTLE_ENDIAN);
}

export function uint32At(bytes: Uint8Array, at: number): number {
  return viewOf(bytes).getUint32(at, LITTLE_ENDIAN);
}

/** Up to the closing zero. */
export function textOf(value: Uint8Array | undefined): string {
  if (value === undefined) return "";
  const end = value.indexOf(0);
  return Buffer.from(value.subarray(0, end < 0 ? value.length : end)).toString("latin1");
}
