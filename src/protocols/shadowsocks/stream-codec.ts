/** The stream ciphers: IV, then everything under it: a client's ADDRESS and data, a server's data. A datagram likewise. */
import { randomBytes } from "node:crypto";
import { ProtocolError } from "#core/errors.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import type { StreamCodec } from "#net/stream/codec-stream.ts";
import {
  ivBytesOf,
  openStreamCipher,
  type StreamCipher,
  type StreamCipherName,
} from "#protocols/crypto/stream-cipher.ts";
import type { SharedSalts } from "#lib/shared-salts.ts";

export interface StreamCodecOptions {
  readonly cipher: StreamCipherName;
  readonly master: Uint8Array;
  /** Sent in front of the payload in the first bytes: a client's target address; empty for a server. */
  readonly request: Buffer;
  /** A server's, which has read the client's IV already. */
  readonly opener?: StreamCipher;
  /** A client's: IVs that servers have used. */
  readonly salts?: SharedSalts;
}

export class UnauthenticatedCodec implements StreamCodec {
  readonly #options: StreamCodecOptions;
  readonly #arrived = new ByteQueue();
  #sealer: StreamCipher | null = null;
  #opener: StreamCipher | null;

  constructor(options: StreamCodecOptions) {
    this.#options = options;
    this.#opener = options.opener ?? null;
  }

  seal(plain: Buffer): Buffer {
    if (this.#sealer !== null) return this.#sealer(plain);
    const { cipher, master, request } = this.#options;
    const iv = randomBytes(ivBytesOf(cipher));
    const sealer = openStreamCipher(cipher, master, iv, "seal");
    this.#sealer = sealer;
    return Buffer.concat([iv, sealer(request), sealer(plain)]);
  }

  sealEnd(): Buffer | null {
    const unsent = this.#sealer === null && this.#options.request.length > 0;
    return unsent ? this.seal(Buffer.alloc(0)) : null;
  }

  open(wire: Buffer, emit: (plain: Buffer) => void): void {
    if (this.#opener !== null) return void (wire.length > 0 && emit(this.#opener(wire)));
    this.#arrived.push(wire);
    const { cipher, master, salts } = this.#options;
    const iv = this.#arrived.take(ivBytesOf(cipher));
    if (iv === null) return;
    if (salts?.add(iv) === false) throw new ProtocolError("the server's IV was used before");
    this.#opener = openStreamCipher(cipher, master, iv, "open");
    if (this.#arrived.length > 0) emit(this.#opener(this.#arrived.takeAll()));
  }

  openEnd(): void {
    if (this.#arrived.length > 0) throw new ProtocolError("the stream ended within its IV");
  }
}

export function sealStreamPacket(name: StreamCipherName, master: Uint8Array, body: Buffer): Buffer {
  const iv = randomBytes(ivBytesOf(name));
  return Buffer.concat([iv, openStreamCipher(name, master, iv, "seal")(body)]);
}

/** Whatever is longer than an IV opens; under another key it opens to noise. Null: too short. */
export function openStreamPacket(name: StreamCipherName, master: Uint8Array, packet: Buffer): Buffer | null {
  const size = ivBytesOf(name);
  if (packet.length <= size) return null;
  return openStreamCipher(name, master, packet.subarray(0, size), "open")(packet.subarray(size));
}
