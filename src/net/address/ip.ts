import type { Destination, Ip } from "#core/session.ts";
import { itemAt, byteAt } from "#lib/at.ts";

/** Literal IPv4 or IPv6 in any spelling, with or without brackets or zone; null where it is something else. */
export function parseIp(text: string): Ip | null {
  const bytes = parseIpBytes(text);
  return bytes === null ? null : ipFromBytes(bytes);
}

/** 4 or 16 bytes; an IPv4-mapped IPv6 address comes back as 4. */
export function parseIpBytes(text: string): Uint8Array | null {
  let body = text;
  if (body.startsWith("[") && body.endsWith("]")) body = body.slice(1, -1);
  if (!body.includes(":")) return parseV4(body);
  const zone = body.indexOf("%");
  const bytes = parseV6(zone < 0 ? body : body.slice(0, zone));
  return bytes === null ? null : unmap(bytes);
}

function parseV4(text: string): Uint8Array | null {
  const bytes = new Uint8Array(4);
  return writeV4(bytes, 0, text) ? bytes : null;
}

/** Writes four bytes where the text is an IPv4 address; false, and perhaps something written: it is none. */
export function writeV4(into: Uint8Array, start: number, text: string): boolean {
  if (text.length < 7 || text.length > 15) return false;
  let part = 0;
  let value = -1;
  let digits = 0;
  for (let at = 0; at <= text.length; at++) {
    const code = at < text.length ? text.charCodeAt(at) : 46;
    if (code === 46) {
      if (value < 0 || part > 3) return false;
      into[start + part++] = value;
      value = -1;
      digits = 0;
    } else if (code >= 48 && code <= 57) {
      if (value === 0 || ++digits > 3) return false; // no leading zeros: they mean octal to some
      value = (value < 0 ? 0 : value * 10) + code - 48;
      if (value > 255) return false;
    } else return false;
  }
  return part === 4;
}

const GROUP = /^[0-9a-f]{1,4}$/i;

function parseV6(text: string): Uint8Array | null {
  if (text.length < 2 || text.length > 45) return null;
  const halves = text.split("::");
  if (halves.length > 2) return null;
  const head = groupsOf(itemAt(halves, 0), halves.length === 1);
  const tail = halves.length === 2 ? groupsOf(itemAt(halves, 1), true) : [];
  if (head === null || tail === null) return null;
  const missing = 8 - head.length - tail.length;
  if (halves.length === 1 ? missing !== 0 : missing < 1) return null;
  const bytes = new Uint8Array(16);
  head.forEach((group, at) => writeGroup(bytes, at, group));
  tail.forEach((group, at) => writeGroup(bytes, 8 - tail.length + at, group));
  return bytes;
}

function groupsOf(text: string, mayEndInV4: boolean): number[] | null {
  if (text === "") return [];
  const groups: number[] = [];
  const parts = text.split(":");
  for (const [at, part] of parts.entries()) {
    if (part.includes(".")) {
      const v4 = mayEndInV4 && at === parts.length - 1 ? parseV4(part) : null;
      if (v4 === null) return null;
      groups.push((byteAt(v4, 0) << 8) | byteAt(v4, 1), (byteAt(v4, 2) << 8) | byteAt(v4, 3));
    } else if (GROUP.test(part)) groups.push(Number.parseInt(part, 16));
    else return null;
  }
  return groups;
}

function writeGroup(bytes: Uint8Array, at: number, group: number): void {
  bytes[at * 2] = group >> 8;
  bytes[at * 2 + 1] = group & 0xff;
}

/** An IPv4-mapped address as 4 bytes; anything else as it is. */
export function unmap(bytes: Uint8Array): Uint8Array {
  if (bytes.length !== 16) return bytes;
  for (let at = 0; at < 10; at++) if (bytes[at] !== 0) return bytes;
  return bytes[10] === 0xff && bytes[11] === 0xff ? bytes.subarray(12) : bytes;
}

/** Of text that is known to be an address; throws a RangeError where it is none. */
export function ipOf(text: string): Ip {
  const ip = parseIp(text);
  if (ip === null) throw new RangeError(`not an address: ${text}`);
  return ip;
}

/** Canonical text (RFC 5952) of 4 or 16 bytes. */
export function ipFromBytes(bytes: Uint8Array): Ip {
  return canonicalText(unmap(bytes)) as Ip;
}

/** Of four bytes, which begin at `start`. */
export function v4FromBytes(bytes: Uint8Array, start: number): Ip {
  return `${bytes[start]}.${bytes[start + 1]}.${bytes[start + 2]}.${bytes[start + 3]}` as Ip;
}

function canonicalText(bytes: Uint8Array): string {
  if (bytes.length === 4) return v4FromBytes(bytes, 0);
  if (bytes.length !== 16) throw new RangeError(`an address has 4 or 16 bytes, not ${bytes.length}`);
  const groups: number[] = [];
  for (let at = 0; at < 16; at += 2) groups.push((byteAt(bytes, at) << 8) | byteAt(bytes, at + 1));
  const [start, length] = longestZeroRun(groups);
  if (length < 2) return groups.map((group) => group.toString(16)).join(":");
  const hex = (part: number[]) => part.map((group) => group.toString(16)).join(":");
  return `${hex(groups.slice(0, start))}::${hex(groups.slice(start + length))}`;
}

function longestZeroRun(groups: readonly number[]): readonly [start: number, length: number] {
  let best: readonly [number, number] = [0, 0];
  for (let at = 0; at < groups.length; at++) {
    let end = at;
    while (groups[end] === 0) end++;
    if (end - at > best[1]) best = [at, end - at];
    at = end;
  }
  return best;
}

/** The bytes of an address known to be one. */
export function bytesOfIp(ip: Ip): Uint8Array {
  const bytes = parseIpBytes(ip);
  if (bytes === null) throw new RangeError(`not an address: ${ip}`);
  return bytes;
}

/** Nothing that goes there leaves the machine. */
export function isLoopback(ip: Ip): boolean {
  return ip === LOOPBACK_V6 || ip.startsWith("127.");
}

export function familyOf(ip: Ip): 4 | 6 {
  return ip.includes(":") ? 6 : 4;
}

export const ANY_V4 = ipOf("0.0.0.0");
export const ANY_V6 = ipOf("::");
export const LOOPBACK_V4 = ipOf("127.0.0.1");
export const LOOPBACK_V6 = ipOf("::1");

/** What the kernel says of a socket (`::ffff:1.2.3.4`, `fe80::1%eth0`), in canonical form. */
export function socketIp(text: string | undefined): Ip {
  return (text === undefined ? null : parseIp(text)) ?? ANY_V4;
}

/**
 * A host as a client wrote it: an address literal becomes `ip`, a name is lower-cased. Dots at the end go, all of them, since
 * resolvers overlook them: rules that see `blocked.test.` or the name `127.0.0.1.` would let it pass.
 */
export function toDestination(host: string, port: number): Destination {
  let { length } = host;
  while (host.endsWith(".", length)) length--;
  const bare = host.slice(0, length);
  const ip = parseIp(bare);
  return ip === null ? { host: bare.toLowerCase(), ip, port } : { host: null, ip, port };
}
