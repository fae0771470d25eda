import type { Ip } from "#core/session.ts";
import { bytesOfIp, ipFromBytes, parseIpBytes } from "./ip.ts";
import { byteAt } from "#lib/at.ts";

/** A network: the address with its host bits cleared. */
export interface Cidr {
  readonly bytes: Uint8Array;
  readonly bits: number;
}

/** `10.0.0.0/8`, `fd00::/8`; a bare address is a network of one. Null when it is neither. */
export function parseCidr(text: string): Cidr | null {
  const slash = text.indexOf("/");
  const raw = parseIpBytes(slash < 0 ? text : text.slice(0, slash));
  if (raw === null) return null;
  const full = raw.length * 8;
  if (slash < 0) return { bytes: raw, bits: full };
  const digits = text.slice(slash + 1);
  if (!/^\d{1,3}$/.test(digits)) return null;
  // ::ffff:0:0/96 and longer name IPv4 networks; `raw` is 4 bytes then and the prefix counts from the full address.
  const mapped = raw.length === 4 && text.slice(0, slash).includes(":");
  const bits = Number(digits) - (mapped ? 96 : 0);
  if (bits < 0 || bits > full) return null;
  return { bytes: maskBytes(raw, bits), bits };
}

/** Of text that is known to be a network; throws a RangeError where it is none. */
export function cidrOf(text: string): Cidr {
  const cidr = parseCidr(text);
  if (cidr === null) throw new RangeError(`not a network: ${text}`);
  return cidr;
}

export function cidrText({ bytes, bits }: Cidr): string {
  return `${ipFromBytes(bytes)}/${bits}`;
}

function maskBytes(bytes: Uint8Array, bits: number): Uint8Array {
  const masked = Uint8Array.from(bytes);
  for (let at = 0; at < masked.length; at++) {
    const keep = Math.max(0, Math.min(8, bits - at * 8));
    masked[at] = byteAt(masked, at) & ((0xff << (8 - keep)) & 0xff);
  }
  return masked;
}

/** Does the network hold the address? Families never mix. */
export function cidrHolds(cidr: Cidr, address: Uint8Array): boolean {
  if (cidr.bytes.length !== address.length) return false;
  const whole = cidr.bits >> 3;
  for (let at = 0; at < whole; at++) if (cidr.bytes[at] !== address[at]) return false;
  const rest = cidr.bits & 7;
  if (rest === 0) return true;
  const mask = (0xff << (8 - rest)) & 0xff;
  return ((byteAt(cidr.bytes, whole) ^ byteAt(address, whole)) & mask) === 0;
}

const PRIVATE = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.168.0.0/16",
  "224.0.0.0/4",
  "240.0.0.0/4",
  "::/128",
  "::1/128",
  "fc00::/7",
  "fe80::/10",
  "ff00::/8",
].map(cidrOf);

/** Private, loopback, link-local, shared, multicast, reserved: what GEOIP,LAN means and what never is global. */
export function isLanIp(ip: Ip): boolean {
  const bytes = bytesOfIp(ip);
  return PRIVATE.some((cidr) => cidrHolds(cidr, bytes));
}

const ONE_LINK_OR_MANY = [
  "0.0.0.0/32",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "224.0.0.0/4",
  "255.255.255.255/32",
  "::/128",
  "::1/128",
  "fe80::/10",
  "ff00::/8",
].map(cidrOf);

/** Does a packet to it go through a router to one machine? Private networks count, loopback and link-local do not. */
export function isRoutedUnicast(ip: Ip): boolean {
  const bytes = bytesOfIp(ip);
  return !ONE_LINK_OR_MANY.some((cidr) => cidrHolds(cidr, bytes));
}
