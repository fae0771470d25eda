/** The messages of hysteria2 inside QUIC (its protocol document, "Proxy Requests" and "UDP"). */
import { randomInt } from "node:crypto";
import { ProtocolError } from "#core/errors.ts";
import type { Destination } from "#core/session.ts";
import type { ByteQueue } from "#lib/byte-queue.ts";
import { toDestination } from "#net/address/ip.ts";
import { WireReader } from "#transport/quic/wire/reader.ts";
import { varintBytes, WireWriter } from "#transport/quic/wire/writer.ts";

/** The type of frame that a proxied stream begins with. */
export const TCP_REQUEST = 0x401;
/** HTTP's, of a request whose password is right. */
export const STATUS_AUTHENTICATED = "233";
export const AUTH_PADDING = [256, 2048] as const;
const STATUS_OK = 0;
const STATUS_ERROR = 1;
const MOST_ADDRESS_BYTES = 2048;
const MOST_MESSAGE_BYTES = 2048;
const MOST_PADDING_BYTES = 4096;
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const TCP_PADDING = [64, 512] as const;
const RESPONSE_PADDING = [128, 1024] as const;

/** Letters and digits, so many that what is padded has no length of its own. */
export function padding([least, below]: readonly [number, number]): string {
  return Array.from({ length: randomInt(least, below) }, () => LETTERS[randomInt(LETTERS.length)]).join("");
}

/** 0x401(vi) LENGTH(vi) `host:port` LENGTH(vi) PADDING */
export function encodeTcpRequest(address: string, fill = padding(TCP_PADDING)): Buffer {
  const [target, filled] = [Buffer.from(address), Buffer.from(fill)];
  const bytes = 2 + varintBytes(target.length) + target.length + varintBytes(filled.length) + filled.length;
  const memory = Buffer.alloc(bytes);
  const out = new WireWriter(memory);
  out.varint(TCP_REQUEST);
  out.varint(target.length);
  out.put(target);
  out.varint(filled.length);
  out.put(filled);
  return memory;
}

/** What `encodeTcpRequest` writes: the address; null: more is needed. Throws `ProtocolError`. */
export function takeTcpRequest(arrived: ByteQueue): string | null {
  const [first] = arrived.peekUpTo(1);
  const target = first === undefined ? null : spanAt(arrived, 1 << (first >> 6), MOST_ADDRESS_BYTES);
  const fill = target === null ? null : spanAt(arrived, target.end, MOST_PADDING_BYTES);
  if (target === null || fill === null) return null;
  return arrived.take(fill.end)?.toString("latin1", target.from, target.end) ?? null;
}

/** STATUS(1) LENGTH(vi) MESSAGE LENGTH(vi) PADDING */
export function encodeTcpResponse(isOk: boolean, message: string, fill = padding(RESPONSE_PADDING)): Buffer {
  const [text, filled] = [Buffer.from(message), Buffer.from(fill)];
  const bytes = 1 + varintBytes(text.length) + text.length + varintBytes(filled.length) + filled.length;
  const memory = Buffer.alloc(bytes);
  const out = new WireWriter(memory);
  out.byte(isOk ? STATUS_OK : STATUS_ERROR);
  for (const part of [text, filled]) {
    out.varint(part.length);
    out.put(part);
  }
  return memory;
}

export interface TcpResponse {
  readonly isOk: boolean;
  readonly message: string;
}

/** STATUS(1) LENGTH(vi) MESSAGE LENGTH(vi) PADDING. Throws `ProtocolError`. */
export function takeTcpResponse(arrived: ByteQueue): TcpResponse | null {
  const message = spanAt(arrived, 1, MOST_MESSAGE_BYTES);
  const fill = message === null ? null : spanAt(arrived, message.end, MOST_PADDING_BYTES);
  if (message === null || fill === null) return null;
  const whole = arrived.take(fill.end);
  if (whole === null) return null;
  const text = whole.toString("utf8", message.from, message.end).replaceAll(/[^\x20-\x7e]/g, "?");
  return { isOk: whole[0] === STATUS_OK, message: text };
}

/** Of a text whose length stands at `at`; null: that has not come. */
function spanAt(arrived: ByteQueue, at: number, most: number): { from: number; end: number } | null {
  const first = arrived.peek(at + 1)?.[at];
  if (first === undefined) return null;
  const from = at + (1 << (first >> 6));
  const head = arrived.peek(from);
  if (head === null) return null;
  const bytes = new WireReader().reset(head, at).varint();
  if (bytes > most) throw new ProtocolError(`hysteria2: a text of ${bytes} bytes`);
  return { from, end: from + bytes };
}

/** Which part of which datagram a frame carries. */
export interface UdpPart {
  readonly packet: number;
  readonly fragment: number;
  readonly fragments: number;
}

export interface UdpMessage extends UdpPart {
  readonly session: number;
  /** `host:port` */
  readonly address: Uint8Array;
  readonly data: Uint8Array;
}

const PACKET_AT = 4;

/** What stands before the data: SESSION(4) PACKET(2) FRAGMENT(1) FRAGMENTS(1) LENGTH(vi) `host:port`. Of no packet yet. */
export function encodeUdpHead(session: number, address: string): Buffer {
  const target = Buffer.from(address);
  const head = Buffer.alloc(8 + varintBytes(target.length) + target.length);
  const out = new WireWriter(head);
  out.uint32(session);
  out.at = 8;
  out.varint(target.length);
  out.put(target);
  return head;
}

export function numberUdpHead(head: Uint8Array, { packet, fragment, fragments }: UdpPart): void {
  head[PACKET_AT] = packet >>> 8;
  head[PACKET_AT + 1] = packet;
  head[PACKET_AT + 2] = fragment;
  head[PACKET_AT + 3] = fragments;
}

/** Address and data are views. Throws `ProtocolError`. */
export function decodeUdp(payload: Uint8Array): UdpMessage {
  const reader = new WireReader().reset(payload);
  const session = reader.uint32();
  const packet = reader.byte() * 256 + reader.byte();
  const [fragment, fragments] = [reader.byte(), reader.byte()];
  const bytes = reader.varint();
  if (bytes === 0 || bytes > MOST_ADDRESS_BYTES)
    throw new ProtocolError(`hysteria2: an address of ${bytes} bytes`);
  if (fragments === 0 || fragment >= fragments)
    throw new ProtocolError("hysteria2: a fragment behind the last");
  const address = reader.take(bytes);
  return { session, packet, fragment, fragments, address, data: reader.take(reader.left) };
}

/** As of `parseAddress`. */
export function decodeAddress(bytes: Uint8Array): Destination | null {
  return parseAddress(Buffer.from(bytes).toString("latin1"));
}

/** `host:port`; null where it is none. */
export function parseAddress(text: string): Destination | null {
  const at = text.lastIndexOf(":");
  const port = Number(text.slice(at + 1));
  if (at <= 0 || !/^\d{1,5}$/.test(text.slice(at + 1)) || port > 65_535) return null;
  const host = text.slice(0, at).replace(/^\[(.*)\]$/, "$1");
  return host === "" ? null : toDestination(host, port);
}
