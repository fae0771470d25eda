/** SVCB and HTTPS data in presentation form (RFC 9460 §2.1, keys of §14.3.2). */
import { ProtocolError } from "#core/errors.ts";
import { ipFromBytes } from "#net/address/ip.ts";
import { readName } from "./name.ts";
import { byteAt } from "#lib/at.ts";

const ECH_KEY = 5;
const KEYS = ["mandatory", "alpn", "no-default-alpn", "port", "ipv4hint", "ech", "ipv6hint"];

const keyName = (key: number) => KEYS[key] ?? `key${key}`;

// SVCB (RFC 9460 §2.2): PRIORITY(2) TARGET, then params: KEY(2) LENGTH(2) VALUE
/** Throws `ProtocolError` where the data is cut short or malformed. */
export function svcbText(data: Uint8Array): string {
  if (data.length < 3) throw new ProtocolError("SVCB data is cut short");
  const bytes = Buffer.from(data);
  const { name, end } = readName(bytes, 2);
  const parts = [String(bytes.readUInt16BE(0)), `${name}.`];
  for (const { key, value } of parameters(bytes, end)) {
    const text = valueText(key, value);
    parts.push(text === "" ? keyName(key) : `${keyName(key)}=${text}`);
  }
  return parts.join(" ");
}

/** One record. */
export interface ServiceBinding {
  /** 0: the record is an alias for `target`; otherwise the lowest is the favourite. */
  readonly priority: number;
  /** Without its last dot; empty: the owner itself. */
  readonly target: string;
  /** The ECHConfigList; null: it has none. */
  readonly ech: Buffer | null;
}

/** Throws `ProtocolError` where the data is cut short. */
export function readServiceBinding(data: Uint8Array): ServiceBinding {
  if (data.length < 3) throw new ProtocolError("SVCB data is cut short");
  const bytes = Buffer.from(data);
  const { name, end } = readName(bytes, 2);
  let ech: Buffer | null = null;
  for (const { key, value } of parameters(bytes, end)) if (key === ECH_KEY) ech = value;
  return { priority: bytes.readUInt16BE(0), target: name, ech };
}

function* parameters(bytes: Buffer, start: number): Generator<{ key: number; value: Buffer }> {
  for (let at = start; at < bytes.length;) {
    const stop = at + 4 <= bytes.length ? at + 4 + bytes.readUInt16BE(at + 2) : Infinity;
    if (stop > bytes.length) throw new ProtocolError("SVCB parameter is cut short");
    yield { key: bytes.readUInt16BE(at), value: bytes.subarray(at + 4, stop) };
    at = stop;
  }
}

function valueText(key: number, value: Buffer): string {
  switch (keyName(key)) {
    case "mandatory":
      return chunks(value, 2, (each) => keyName(each.readUInt16BE())).join(",");
    case "alpn":
      return `"${protocols(value).join(",")}"`;
    case "port":
      return chunks(value, 2, (each) => String(each.readUInt16BE())).join(",");
    case "ipv4hint":
      return chunks(value, 4, ipFromBytes).join(",");
    case "ipv6hint":
      return chunks(value, 16, ipFromBytes).join(",");
    case "ech":
      return value.toString("base64");
    default:
      return value.length === 0 ? "" : `"${escaped(value)}"`;
  }
}

function chunks<T>(value: Buffer, size: number, read: (chunk: Buffer) => T): T[] {
  if (value.length % size !== 0) throw new ProtocolError("SVCB parameter has an impossible length");
  return Array.from({ length: value.length / size }, (_, at) =>
    read(value.subarray(at * size, at * size + size)),
  );
}

function protocols(value: Buffer): string[] {
  const names: string[] = [];
  for (let at = 0; at < value.length;) {
    const end = at + 1 + byteAt(value, at);
    if (end > value.length) throw new ProtocolError("SVCB alpn is cut short");
    names.push(escaped(value.subarray(at + 1, end)));
    at = end;
  }
  return names;
}

function escaped(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => {
    if (byte === 0x22 || byte === 0x5c || byte === 0x2c) return `\\${String.fromCharCode(byte)}`;
    return byte > 0x20 && byte < 0x7f ? String.fromCharCode(byte) : `\\${String(byte).padStart(3, "0")}`;
  }).join("");
}
