import { timingSafeEqual } from "node:crypto";
import type { ShadowsocksDetails } from "#core/wire-details.ts";
import { ProtocolError } from "#core/errors.ts";
import { SharedSalts } from "#lib/shared-salts.ts";
import { sessionSubkey, sip004Subkey } from "#protocols/shadowsocks/methods.ts";
import { checkTime, TYPE_SERVER } from "#protocols/shadowsocks/sip022.ts";
import { type CipherMemory, TAG_BYTES } from "./cipher-memory.ts";

/** Of SIP022: TYPE(1) TIME(8) REQUEST SALT LENGTH(2). */
const FIXED_BYTES = 11;
const OPEN = 0;

/** What a client still waits for in front of the server's chunks: SALT, and in SIP022 the sealed header behind it. */
export class ShadowsocksAnswer {
  /** Wire bytes. */
  readonly bytes: number;
  readonly #answer: NonNullable<ShadowsocksDetails["answer"]>;
  readonly #requestSalt: Uint8Array | null;
  readonly #clockAheadMs: number;
  readonly #salts: SharedSalts | null;
  /** The context of the direction, once it was opened; its owner frees it. */
  context = 0n;
  /** Messages so far. */
  count = 0;
  /** Of the first payload, which no length stands in front of; -1: a length does. */
  payloadBytes = -1;

  constructor(answer: NonNullable<ShadowsocksDetails["answer"]>, details: ShadowsocksDetails) {
    const saltBytes = answer.key.length;
    this.#answer = answer;
    this.#requestSalt = details.requestSalt;
    this.#clockAheadMs = details.clockAheadMs;
    this.#salts = details.salts === null ? null : new SharedSalts(details.salts);
    this.bytes = saltBytes + (details.requestSalt === null ? 0 : FIXED_BYTES + saltBytes + TAG_BYTES);
  }

  /** A salt that another answer had is a replay. So much of it lies there, as far behind the start of the wire's memory. False: it is not this server's answer. */
  open(memory: CipherMemory, at: number): boolean {
    const { cipher, key } = this.#answer;
    const salt = memory.wire.slice(at, at + key.length);
    if (this.#salts?.add(salt) === false) return false;
    const subkey = this.#requestSalt === null ? sip004Subkey(key, salt) : sessionSubkey(key, salt);
    this.context = memory.evp.openContext(cipher, subkey, OPEN);
    return this.#requestSalt === null || this.#openFixed(memory, at + key.length, this.#requestSalt);
  }

  #openFixed(
    { evp, scratch, scratchAt, wireAddresses }: CipherMemory,
    at: number,
    requestSalt: Uint8Array,
  ): boolean {
    const size = FIXED_BYTES + requestSalt.length;
    evp.beginCounted(this.context, this.count++);
    if (!evp.openAt(this.context, scratchAt, wireAddresses.of(at), size)) return false;
    const fixed = Buffer.from(scratch.subarray(0, size));
    if (fixed[0] !== TYPE_SERVER || !isTimely(fixed, Date.now() + this.#clockAheadMs)) return false;
    this.payloadBytes = fixed.readUInt16BE(size - 2);
    return timingSafeEqual(fixed.subarray(9, size - 2), requestSalt);
  }
}

function isTimely(fixed: Buffer, nowMs: number): boolean {
  try {
    checkTime(fixed, 1, nowMs);
    return true;
  } catch (error) {
    if (error instanceof ProtocolError) return false;
    throw error;
  }
}

/** Of a server's answer, in SIP022: what is sealed behind the salt, with a first payload of so many bytes. */
export function fixedInto(
  out: Uint8Array,
  { requestSalt, clockAheadMs }: ShadowsocksDetails,
  bytes: number,
): number {
  if (requestSalt === null) return 0;
  const fixed = Buffer.from(out.buffer, out.byteOffset, FIXED_BYTES + requestSalt.length);
  fixed[0] = TYPE_SERVER;
  fixed.writeBigUInt64BE(BigInt(Math.floor((Date.now() + clockAheadMs) / 1000)), 1);
  fixed.set(requestSalt, 9);
  fixed.writeUInt16BE(bytes, fixed.length - 2);
  return fixed.length;
}
