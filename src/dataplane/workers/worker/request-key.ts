import { SOCKADDR_BYTES, v4At } from "#platform/linux/sockaddr.ts";
import { REQUEST_BYTES } from "#dataplane/workers/shared/accept-memory.ts";
import { byteAt } from "#lib/at.ts";

/** A key as it is kept. */
export interface StoredRequestKey {
  readonly hash: number;
  readonly bytes: Uint8Array;
}

const HOST_BYTES = 20;
const MOST_BYTES = 4 + 2 * (1 + HOST_BYTES) + REQUEST_BYTES;
/** Scope of a sockaddr_in6 and the address in front of it. */
const V6_HOST_AT = SOCKADDR_BYTES - HOST_BYTES;

/**
 * A client's request as bytes, written anew for each: equal when one decision is valid for both. No strings, and no
 * memory but its own.
 */
export class RequestKey {
  // TAG(4) SIZE(1) SOURCE(4 or 20) SIZE(1) LOCAL(0, 4 or 20) REQUEST(n)
  readonly #bytes = new Uint8Array(MOST_BYTES);
  /** Prevents outsiders from choosing requests with equal hashes. */
  readonly #seed = Math.trunc(Math.random() * 2 ** 32) | 0;
  #size = 0;
  #hash = 0;

  get hash(): number {
    return this.#hash;
  }

  /** `tag`: the listener and the state of the handshake with the client. */
  begin(tag: number): void {
    this.#size = 0;
    this.#hash = this.#seed;
    for (let shift = 0; shift < 32; shift += 8) this.#add((tag >>> shift) & 0xff);
  }

  /** FNV-1a. */
  #add(byte: number): void {
    this.#bytes[this.#size++] = byte;
    this.#hash = Math.imul(this.#hash ^ byte, 0x0100_0193);
  }

  /** The address of the sockaddr that begins there, without its port; the scope of IPv6 with it. */
  addHost(bytes: Uint8Array, start: number): void {
    const v4 = v4At(bytes, start);
    const size = v4 > 0 ? 4 : HOST_BYTES;
    const at = start + (v4 > 0 ? v4 : V6_HOST_AT);
    this.#add(size);
    this.add(bytes, at, at + size);
  }

  addNoHost(): void {
    this.#add(0);
  }

  /** `REQUEST_BYTES` at most. */
  add(bytes: Uint8Array, from: number, end: number): void {
    for (let at = from; at < end; at++) this.#add(byteAt(bytes, at));
  }

  equals({ hash, bytes }: StoredRequestKey): boolean {
    if (hash !== this.#hash || bytes.length !== this.#size) return false;
    for (let at = 0; at < bytes.length; at++) if (bytes[at] !== this.#bytes[at]) return false;
    return true;
  }

  kept(): StoredRequestKey {
    return { hash: this.#hash, bytes: this.#bytes.slice(0, this.#size) };
  }
}
