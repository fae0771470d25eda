/** The peers of a UDP socket: between the kernel's structures and ours. Most datagrams are of the same peer as before. */
import type { Endpoint, Ip } from "#core/session.ts";
import { AF_INET, decodeSockaddr, encodeSockaddr, SOCKADDR_BYTES } from "#platform/datagrams.ts";
import { bytesOfIp, ipFromBytes } from "./ip.ts";
import { byteAt } from "#lib/at.ts";

/** IPv4 peers, and links of others, that are remembered; with one more all are forgotten. */
const MOST_KNOWN = 4096;

// sockaddr_in6: the address, and to its end the number of the link that a link-local one is of (RFC 4007 §6)
const ADDRESS_AT = 8;
const SCOPE_AT = 24;

export class PeerNames {
  readonly #isV6: boolean;
  readonly #known = new Map<number, Endpoint>();
  /** By which link each peer with a link-local address has come: an answer goes there. */
  readonly #links = new Map<Ip, Uint8Array>();
  readonly #fromName = new Uint8Array(SOCKADDR_BYTES);
  #from: Endpoint | null = null;
  #to: Uint8Array | null = null;
  #toIp: Ip | null = null;
  #toPort = 0;

  /** `isV6`: the socket is of that family, and knows an IPv4 peer by its mapped address. */
  constructor(isV6: boolean) {
    this.#isV6 = isV6;
  }

  /** The same object for the same peer, in most cases. Null: it is no address. */
  endpointOf(name: Uint8Array): Endpoint | null {
    if (this.#from !== null && sameName(name, this.#fromName)) return this.#from;
    const isV4 = byteAt(name, 0) + byteAt(name, 1) === AF_INET;
    const endpoint = isV4 ? this.#knownV4(name) : decode(name);
    if (endpoint === null) return null;
    if (!isV4 && isLinkLocal(name, ADDRESS_AT)) this.#keepLink(endpoint.ip, name.slice(SCOPE_AT));
    this.#fromName.set(name);
    return (this.#from = endpoint);
  }

  #knownV4(name: Uint8Array): Endpoint | null {
    let key = 0;
    for (let at = 2; at < 8; at++) key = key * 256 + byteAt(name, at); // port and address: 48 bits
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const endpoint = decode(name);
    if (this.#known.size >= MOST_KNOWN) this.#known.clear();
    if (endpoint !== null) this.#known.set(key, endpoint);
    return endpoint;
  }

  #keepLink(ip: Ip, scope: Uint8Array): void {
    if (this.#links.size >= MOST_KNOWN) this.#links.clear();
    this.#links.set(ip, scope);
    if (ip === this.#toIp) this.#to = null; // it may have been the one of another link
  }

  /** A sockaddr that is never changed; the same object for the same peer as before. */
  nameOf(ip: Ip, port: number): Uint8Array {
    if (this.#to !== null && port === this.#toPort && ip === this.#toIp) return this.#to;
    const bytes = bytesOfIp(ip);
    const address = this.#isV6 && bytes.length === 4 ? Uint8Array.of(...MAPPED, ...bytes) : bytes;
    const name = new Uint8Array(SOCKADDR_BYTES);
    this.#to = name.subarray(0, encodeSockaddr(name, { address, port }));
    if (isLinkLocal(bytes, 0)) name.set(this.#links.get(ip) ?? NO_SCOPE, SCOPE_AT);
    this.#toIp = ip;
    this.#toPort = port;
    return this.#to;
  }
}

const NO_SCOPE = new Uint8Array(SOCKADDR_BYTES - SCOPE_AT);

/** fe80::/10 (RFC 4291 §2.4), of sixteen bytes from there on; four are never one, nor are those of a mapped address. */
function isLinkLocal(bytes: Uint8Array, at: number): boolean {
  return bytes.length > 4 && bytes[at] === 0xfe && (byteAt(bytes, at + 1) & 0xc0) === 0x80;
}

/** RFC 4291 §2.5.5.2. */
const MAPPED = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

function decode(name: Uint8Array): Endpoint | null {
  const raw = decodeSockaddr(name);
  return raw === null ? null : { ip: ipFromBytes(raw.address), port: raw.port };
}

/** Of an IPv4 name only family, port and address count; what lies behind them is older. */
function sameName(a: Uint8Array, b: Uint8Array): boolean {
  const length = byteAt(a, 0) + byteAt(a, 1) === AF_INET ? 8 : SOCKADDR_BYTES;
  for (let at = 0; at < length; at++) if (a[at] !== b[at]) return false;
  return true;
}
