/** TCP of the 2022 edition (SIP022 §3.1): headers with time and type, a response bound to its request by the salt. */
import { randomInt, timingSafeEqual } from "node:crypto";
import { ProtocolError } from "#core/errors.ts";
import type { DetachedState } from "#core/wire-state.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import { drawBytes } from "#lib/random-bytes.ts";
import { openAead, TAG_BYTES } from "#protocols/crypto/aead.ts";
import type { ReplayFilter } from "#protocols/crypto/replay-filter.ts";
import { lastOf } from "#lib/at.ts";
import {
  ChunkOpener,
  ChunkSealer,
  canGive,
  departure,
  type Halves,
  MAX_CHUNK,
  type Unbegun,
} from "./chunks.ts";
import { streamIdentities } from "./identity.ts";
import { type Method, sessionSubkey, wireCipherOf } from "./methods.ts";
import type { BeginningCodec, DepartingCodec } from "#net/stream/departing-stream.ts";

export const TYPE_CLIENT = 0;
export const TYPE_SERVER = 1;
export const MAX_PADDING = 900;
const MAX_SKEW_SECONDS = 30;

/** Random bytes, time and padding: what a test replaces by known values. */
export interface Chance {
  salt(sizeBytes: number): Buffer;
  /** Padding for a request whose first payload has so many bytes. Never 0 where there is no payload. */
  padding(payloadBytes: number): Buffer;
  nowMs(): number;
}

export function chanceBy(nowMs: () => number): Chance {
  return {
    salt: drawBytes,
    // Only short requests need another length; long ones would pay for nothing.
    padding: (payloadBytes) => Buffer.alloc(payloadBytes < MAX_PADDING ? randomInt(1, MAX_PADDING + 1) : 0),
    nowMs,
  };
}

/** Throws `ProtocolError` where the two clocks differ by more than 30 s. */
export function checkTime(bytes: Buffer, at: number, nowMs: number): void {
  const skew = Number(bytes.readBigUInt64BE(at)) - Math.floor(nowMs / 1000);
  if (!(Math.abs(skew) <= MAX_SKEW_SECONDS))
    throw new ProtocolError(`the peer's clock differs by ${skew} s, ${MAX_SKEW_SECONDS} s are allowed`);
}

/** Throws `ProtocolError` for a request from before the memory of salts began: it may have been answered then. */
export function checkCovered(
  salts: Pick<ReplayFilter, "covers">,
  bytes: Buffer,
  at: number,
  nowMs: number,
): void {
  if (!salts.covers(Number(bytes.readBigUInt64BE(at)), nowMs))
    throw new ProtocolError("the request was made before this server started");
}

export function sip022Sealer(method: Method, psk: Uint8Array, salt: Uint8Array): ChunkSealer {
  return new ChunkSealer(openAead(method.aead, sessionSubkey(psk, salt)), MAX_CHUNK[2022]);
}

export function sip022Opener(method: Method, psk: Uint8Array, salt: Uint8Array): ChunkOpener {
  return new ChunkOpener(openAead(method.aead, sessionSubkey(psk, salt)), MAX_CHUNK[2022]);
}

/** What client and server share once the headers are through. */
abstract class Sip022Codec implements DepartingCodec {
  readonly wireKind = "sealed";
  protected readonly arrived = new ByteQueue();
  protected sealer: ChunkSealer | null = null;
  protected opener: ChunkOpener | null = null;

  protected abstract sealFirst(plain: Buffer): Buffer;
  /** True when the whole header was read. */
  protected abstract openFirst(emit: (plain: Buffer) => void): boolean;
  abstract sealEnd(): Buffer | null;

  seal(plain: Buffer): Buffer {
    if (this.sealer === null) return this.sealFirst(plain);
    const out = Buffer.allocUnsafe(this.sealer.sizeOf(plain.length));
    this.sealer.chunksInto(out, 0, plain);
    return out;
  }

  open(wire: Buffer, emit: (plain: Buffer) => void): void {
    this.arrived.push(wire);
    if (!this.openFirst(emit)) return;
    this.opener?.openChunks(this.arrived, emit);
  }

  openEnd(): void {
    if (this.arrived.length > 0 || this.opener?.idle === false)
      throw new ProtocolError("the stream ended within a chunk");
  }

  /** What the direction needs that has not begun. */
  protected abstract unbegun(): Unbegun;
  /** The headers are in a state in which a worker can go on. */
  protected abstract get isBetween(): boolean;

  get canDepart(): boolean {
    return this.isBetween && canGive(this.#halves);
  }

  get #halves(): Halves {
    const { sealer, opener, arrived } = this;
    return { sealer, opener, arrived };
  }

  depart(isSpared: boolean): DetachedState {
    const hasBegun = this.sealer !== null && this.opener !== null;
    return departure(this.#halves, isSpared, hasBegun ? null : this.unbegun());
  }

  close(): void {
    this.sealer?.[Symbol.dispose]();
    this.opener?.[Symbol.dispose]();
  }
}

export interface ClientOptions {
  readonly method: Method;
  /** Server keys first, the user's own last. */
  readonly keys: readonly Uint8Array[];
  /** The target in SOCKS form. */
  readonly address: Buffer;
  readonly chance: Chance;
}

export class Sip022ClientCodec extends Sip022Codec implements BeginningCodec {
  readonly #options: ClientOptions;
  readonly #psk: Uint8Array;
  #salt: Buffer = Buffer.alloc(0);
  /** Length of the first payload; -1 until the header was read. */
  #firstBytes = -1;
  #headerDone = false;

  constructor(options: ClientOptions) {
    super();
    this.#options = options;
    this.#psk = lastOf(options.keys);
  }

  // Request: SALT EIH(16)* FIXED[TYPE(1)=0 TIME(8) LENGTH(2)] VARIABLE[ADDRESS PADLEN(2) PADDING PAYLOAD] CHUNKS
  protected sealFirst(plain: Buffer): Buffer {
    const { method, keys, address, chance } = this.#options;
    const salt = chance.salt(method.keyBytes);
    const padding = chance.padding(plain.length);
    const room = MAX_CHUNK[2022] - address.length - 2 - padding.length;
    const padLength = Buffer.alloc(2);
    padLength.writeUInt16BE(padding.length);
    const variable = Buffer.concat([address, padLength, padding, plain.subarray(0, room)]);
    const fixed = Buffer.alloc(11);
    fixed[0] = TYPE_CLIENT;
    fixed.writeBigUInt64BE(BigInt(Math.floor(chance.nowMs() / 1000)), 1);
    fixed.writeUInt16BE(variable.length, 9);
    const sealer = sip022Sealer(method, this.#psk, salt);
    const identities = streamIdentities(keys, salt);
    const rest = plain.subarray(room);
    const head = salt.length + identities.length + fixed.length + variable.length + 2 * TAG_BYTES;
    const out = Buffer.allocUnsafe(head + sealer.sizeOf(rest.length));
    identities.copy(out, salt.copy(out));
    const at = sealer.partInto(out, salt.length + identities.length, fixed);
    sealer.chunksInto(out, sealer.partInto(out, at, variable), rest);
    this.#salt = salt;
    this.sealer = sealer;
    return out;
  }

  begin(): Buffer {
    return this.sealFirst(Buffer.alloc(0));
  }

  sealEnd(): Buffer | null {
    return this.sealer === null ? this.begin() : null;
  }

  // Response: SALT FIXED[TYPE(1)=1 TIME(8) REQUEST SALT LENGTH(2)] PAYLOAD[LENGTH] CHUNKS
  protected openFirst(emit: (plain: Buffer) => void): boolean {
    if (this.#headerDone) return true;
    const { method } = this.#options;
    if (this.#firstBytes < 0) {
      const header = this.arrived.take(2 * method.keyBytes + 11 + TAG_BYTES);
      if (header === null) return false;
      this.opener = sip022Opener(method, this.#psk, header.subarray(0, method.keyBytes));
      this.#firstBytes = this.#readFixed(this.opener.openPart(header.subarray(method.keyBytes)));
    }
    const sealed = this.arrived.take(this.#firstBytes + TAG_BYTES);
    if (sealed === null) return false;
    const plain = (this.opener as ChunkOpener).openPart(sealed);
    this.#headerDone = true;
    if (plain.length > 0) emit(plain);
    return true;
  }

  #readFixed(fixed: Buffer): number {
    if (fixed[0] !== TYPE_SERVER) throw new ProtocolError(`a response of type ${fixed[0]}, expected 1`);
    checkTime(fixed, 1, this.#options.chance.nowMs());
    const end = 9 + this.#options.method.keyBytes;
    const echoed = fixed.subarray(9, end);
    if (echoed.length !== this.#salt.length || !timingSafeEqual(echoed, this.#salt))
      throw new ProtocolError("the response belongs to another request");
    return fixed.readUInt16BE(end);
  }

  /** A response that was read in part is whole in a moment. */
  protected get isBetween(): boolean {
    return this.sealer !== null && (this.#headerDone || this.opener === null);
  }

  protected unbegun(): Unbegun {
    const { method, chance } = this.#options;
    const answer = { cipher: wireCipherOf(method), key: this.#psk };
    const clockAheadMs = chance.nowMs() - Date.now();
    return {
      sealer: null,
      details: { salt: null, answer, requestSalt: this.#salt, salts: null, clockAheadMs },
    };
  }

  override openEnd(): void {
    if (!this.#headerDone && (this.opener !== null || this.arrived.length > 0))
      throw new ProtocolError("the stream ended within the response header");
    super.openEnd();
  }
}

export interface ServerOptions {
  readonly method: Method;
  readonly psk: Uint8Array;
  readonly requestSalt: Buffer;
  /** As far as the request has been read. */
  readonly opener: ChunkOpener;
  readonly chance: Chance;
}

export class Sip022ServerCodec extends Sip022Codec {
  readonly #options: ServerOptions;

  constructor(options: ServerOptions) {
    super();
    this.#options = options;
    this.opener = options.opener;
  }

  protected sealFirst(plain: Buffer): Buffer {
    const { method, psk, requestSalt, chance } = this.#options;
    const salt = chance.salt(method.keyBytes);
    const first = plain.subarray(0, MAX_CHUNK[2022]);
    const rest = plain.subarray(first.length);
    const fixed = Buffer.alloc(11 + requestSalt.length);
    fixed[0] = TYPE_SERVER;
    fixed.writeBigUInt64BE(BigInt(Math.floor(chance.nowMs() / 1000)), 1);
    requestSalt.copy(fixed, 9);
    fixed.writeUInt16BE(first.length, 9 + requestSalt.length);
    const sealer = sip022Sealer(method, psk, salt);
    const head = salt.length + fixed.length + first.length + 2 * TAG_BYTES;
    const out = Buffer.allocUnsafe(head + sealer.sizeOf(rest.length));
    const at = sealer.partInto(out, salt.copy(out), fixed);
    sealer.chunksInto(out, sealer.partInto(out, at, first), rest);
    this.sealer = sealer;
    return out;
  }

  sealEnd(): Buffer | null {
    return null;
  }

  protected openFirst(): boolean {
    return true; // the handshake has read it
  }

  protected readonly isBetween = true;

  protected unbegun(): Unbegun {
    const { method, psk, requestSalt, chance } = this.#options;
    const salt = chance.salt(method.keyBytes);
    const clockAheadMs = chance.nowMs() - Date.now();
    const sealer = sip022Sealer(method, psk, salt);
    return { sealer, details: { salt, answer: null, requestSalt, salts: null, clockAheadMs } };
  }
}
