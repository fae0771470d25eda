/** TCP of the AEAD ciphers: SALT(key size) then chunks; a client's first chunk starts with the SOCKS address (SIP004). */
import { ProtocolError } from "#core/errors.ts";
import type { DetachedState } from "#core/wire-state.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import type { SharedSalts } from "#lib/shared-salts.ts";
import { drawBytes } from "#lib/random-bytes.ts";
import { openAead } from "#protocols/crypto/aead.ts";
import { ChunkOpener, ChunkSealer, canGive, departure, MAX_CHUNK, type Unbegun } from "./chunks.ts";
import { type Method, sip004Subkey, wireCipherOf } from "./methods.ts";
import type { BeginningCodec } from "#net/stream/departing-stream.ts";

export interface Sip004Options {
  readonly method: Method;
  readonly master: Uint8Array;
  /** Sent in front of the first payload: a client's target address; empty for a server. */
  readonly request: Buffer;
  /** A server's, which has read the client's salt already. */
  readonly opener?: ChunkOpener;
  /** A client's: salts that servers have used. */
  readonly salts?: SharedSalts;
  /** For tests: a fixed salt. */
  readonly salt?: Buffer;
}

export class Sip004Codec implements BeginningCodec {
  readonly wireKind = "sealed";
  readonly #options: Sip004Options;
  readonly #arrived = new ByteQueue();
  #sealer: ChunkSealer | null = null;
  #opener: ChunkOpener | null;

  constructor(options: Sip004Options) {
    this.#options = options;
    this.#opener = options.opener ?? null;
  }

  seal(plain: Buffer): Buffer {
    if (this.#sealer === null) return this.#sealFirst(plain);
    const out = Buffer.allocUnsafe(this.#sealer.sizeOf(plain.length));
    this.#sealer.chunksInto(out, 0, plain);
    return out;
  }

  #sealFirst(plain: Buffer): Buffer {
    const { request } = this.#options;
    const { salt, sealer } = this.#begin();
    this.#sealer = sealer;
    const first = request.length === 0 ? plain : Buffer.concat([request, plain]);
    const out = Buffer.allocUnsafe(salt.length + sealer.sizeOf(first.length));
    sealer.chunksInto(out, salt.copy(out), first);
    return out;
  }

  #begin(): { readonly salt: Buffer; readonly sealer: ChunkSealer } {
    const { method, master } = this.#options;
    const salt = this.#options.salt ?? drawBytes(method.keyBytes);
    const aead = openAead(method.aead, sip004Subkey(master, salt));
    return { salt, sealer: new ChunkSealer(aead, MAX_CHUNK.sip004) };
  }

  begin(): Buffer {
    return this.#sealFirst(Buffer.alloc(0));
  }

  sealEnd(): Buffer | null {
    const unsent = this.#sealer === null && this.#options.request.length > 0;
    return unsent ? this.begin() : null;
  }

  open(wire: Buffer, emit: (plain: Buffer) => void): void {
    this.#arrived.push(wire);
    this.#opener ??= this.#openFirst();
    this.#opener?.openChunks(this.#arrived, emit);
  }

  #openFirst(): ChunkOpener | null {
    const { method, master, salts } = this.#options;
    const salt = this.#arrived.take(method.keyBytes);
    if (salt === null) return null;
    if (salts?.add(salt) === false) throw new ProtocolError("the server's salt was used before");
    return sip004Opener(method, master, salt);
  }

  openEnd(): void {
    if (this.#arrived.length > 0 || this.#opener?.idle === false)
      throw new ProtocolError("the stream ended within a chunk");
  }

  /** A client's request is out, or it is a server. */
  get canDepart(): boolean {
    const [sealer, opener, arrived] = [this.#sealer, this.#opener, this.#arrived];
    const isServer = this.#options.request.length === 0;
    const hasBegun = isServer
      ? opener !== null
      : sealer !== null && (opener !== null || arrived.length === 0);
    return hasBegun && canGive({ sealer, opener, arrived });
  }

  depart(isSpared: boolean): DetachedState {
    const [sealer, opener, arrived] = [this.#sealer, this.#opener, this.#arrived];
    const hasBegun = sealer !== null && opener !== null;
    return departure({ sealer, opener, arrived }, isSpared, hasBegun ? null : this.#unbegun());
  }

  #unbegun(): Unbegun {
    const common = { requestSalt: null, clockAheadMs: 0 };
    if (this.#sealer === null) {
      const { salt, sealer } = this.#begin();
      return { sealer, details: { ...common, salt, answer: null, salts: null } };
    }
    const { method, master, salts } = this.#options;
    const answer = { cipher: wireCipherOf(method), key: master };
    return { sealer: null, details: { ...common, salt: null, answer, salts: salts?.memory ?? null } };
  }

  close(): void {
    this.#sealer?.[Symbol.dispose]();
    this.#opener?.[Symbol.dispose]();
  }
}

export function sip004Opener(method: Method, master: Uint8Array, salt: Uint8Array): ChunkOpener {
  return new ChunkOpener(openAead(method.aead, sip004Subkey(master, salt)), MAX_CHUNK.sip004);
}
