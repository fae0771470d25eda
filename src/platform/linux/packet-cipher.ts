/** Packet protection of QUIC by one key (RFC 9001 §5.3, §5.4). A packet costs a few calls of libcrypto, and no allocation. */
import { byteAt } from "#lib/at.ts";
import { MINUS_ONE } from "./machine-words.ts";
import type { PacketMemory } from "./packet-memory.ts";
import { MASK_AT, NULL, type QuicCipherCalls } from "./quic-cipher-calls.ts";

const CHACHA = 0x1303;
const TAG_BYTES = 16;
const TAG_SIZE = 16n;
const EVP_CTRL_AEAD_GET_TAG = 0x10n;
const EVP_CTRL_AEAD_SET_TAG = 0x11n;
const SAMPLE_SIZE = 16n;
const MASK_SIZE = 5n;
const LONG_HEADER = 0x80;
/** The sample begins so far behind the start of the packet number, however long that is (RFC 9001 §5.4.2). */
const SAMPLE_AFTER = 4;
const SAMPLE_BYTES = 16;

/** The key of header protection, which all phases of a direction share. */
export class HeaderKey {
  readonly suite: number;
  readonly #calls: QuicCipherCalls;
  readonly #context: bigint;
  #users = 1;

  /** Its first user's. */
  constructor(calls: QuicCipherCalls, suite: number, cipher: bigint, key: Uint8Array) {
    this.suite = suite;
    this.#calls = calls;
    this.#context = calls.context(this, cipher, key, true);
    if (suite !== CHACHA) calls.functions.EVP_CIPHER_CTX_set_padding(this.#context, 0);
  }

  /** One more user. */
  share(): void {
    this.#users++;
  }

  release(): void {
    if (--this.#users === 0) this.#calls.free(this, this.#context);
  }

  /** From 16 bytes at this address. False: the library refuses. */
  makeMask(sample: bigint): boolean {
    const { EVP_CipherInit_ex, EVP_CipherUpdate } = this.#calls.functions;
    const { maskAt, lengthAt, zerosAt } = this.#calls;
    // ChaCha20: the sample is counter and nonce, as libcrypto's IV has them, and the mask is the key stream.
    return this.suite === CHACHA
      ? EVP_CipherInit_ex(this.#context, NULL, NULL, NULL, sample, MINUS_ONE) === 1 &&
          EVP_CipherUpdate(this.#context, maskAt, lengthAt, zerosAt, MASK_SIZE) === 1
      : EVP_CipherUpdate(this.#context, maskAt, lengthAt, sample, SAMPLE_SIZE) === 1;
  }
}

/** The keys of one direction at one level. After `dispose` its methods must not be called. */
export class PacketCipher implements Disposable {
  readonly header: HeaderKey;
  readonly #ciphers: QuicCipherCalls;
  readonly #functions: QuicCipherCalls["functions"];
  readonly #iv0: number;
  readonly #iv1: number;
  readonly #iv2: number;
  readonly #body: bigint;
  #closed = false;

  /** `header` is one that counts it as a user. Throws where the library refuses. */
  constructor(
    ciphers: QuicCipherCalls,
    aead: bigint,
    { key, iv }: { readonly key: Uint8Array; readonly iv: Uint8Array },
    seals: boolean,
    header: HeaderKey,
  ) {
    const view = new DataView(iv.buffer, iv.byteOffset, iv.byteLength);
    this.header = header;
    this.#ciphers = ciphers;
    this.#functions = ciphers.functions;
    this.#iv0 = view.getUint32(0);
    this.#iv1 = view.getUint32(4);
    this.#iv2 = view.getUint32(8);
    this.#body = ciphers.context(this, aead, key, seals);
  }

  /**
   * In place: `headBytes` of header with the packet number at its end, `bodyBytes` behind it, and room for 16 more. The
   * header is protected, too. `at`: of the packet within the memory.
   */
  seal({ bytes, addresses }: PacketMemory, at: number, layout: PacketLayout, packetNumber: number): void {
    const { headBytes, numberBytes, bodyBytes } = layout;
    const { EVP_CipherUpdate, EVP_CipherFinal_ex, EVP_CIPHER_CTX_ctrl } = this.#functions;
    const { lengthAt, endAt, lengths } = this.#ciphers;
    const bodyAt = at + headBytes;
    const body = addresses.of(bodyAt);
    this.#setNonce(packetNumber);
    const done =
      EVP_CipherUpdate(this.#body, NULL, lengthAt, addresses.of(at), lengths.of(headBytes)) === 1 &&
      EVP_CipherUpdate(this.#body, body, lengthAt, body, lengths.of(bodyBytes)) === 1 &&
      EVP_CipherFinal_ex(this.#body, endAt, lengthAt) === 1 &&
      EVP_CIPHER_CTX_ctrl(this.#body, EVP_CTRL_AEAD_GET_TAG, TAG_SIZE, addresses.of(bodyAt + bodyBytes)) ===
        1;
    if (!done) throw this.#broken();
    const numberAt = bodyAt - numberBytes;
    this.#makeMask(addresses.of(numberAt + SAMPLE_AFTER));
    bytes[at] = byteAt(bytes, at) ^ this.#maskOfFirst(byteAt(bytes, at));
    this.#maskNumber(bytes, numberAt, numberBytes);
  }

  /**
   * Removes the protection of the header of a packet of `size` bytes at the start of the memory, in place; `numberAt`: of
   * its packet number. Answers the first byte; -1 where the packet is too short for it.
   */
  unmask({ bytes, addresses }: PacketMemory, size: number, numberAt: number): number {
    if (numberAt + SAMPLE_AFTER + SAMPLE_BYTES > size) return -1;
    this.#makeMask(addresses.of(numberAt + SAMPLE_AFTER));
    const first = byteAt(bytes, 0) ^ this.#maskOfFirst(byteAt(bytes, 0));
    bytes[0] = first;
    this.#maskNumber(bytes, numberAt, (first & 3) + 1);
    return first;
  }

  /**
   * Opens a packet of `size` bytes at the start of the memory, whose header was unmasked, in place: its plain bytes begin at
   * `headBytes`. Answers how many they are, or -1 where the tag is wrong, and then they are not to be used.
   */
  open({ addresses }: PacketMemory, size: number, headBytes: number, packetNumber: number): number {
    const bodyBytes = size - headBytes - TAG_BYTES;
    if (bodyBytes < 0) return -1;
    const { EVP_CipherUpdate, EVP_CipherFinal_ex, EVP_CIPHER_CTX_ctrl } = this.#functions;
    const { lengthAt, endAt, lengths } = this.#ciphers;
    const body = addresses.of(headBytes);
    this.#setNonce(packetNumber);
    const isAuthentic =
      EVP_CIPHER_CTX_ctrl(
        this.#body,
        EVP_CTRL_AEAD_SET_TAG,
        TAG_SIZE,
        addresses.of(headBytes + bodyBytes),
      ) === 1 &&
      EVP_CipherUpdate(this.#body, NULL, lengthAt, addresses.of(0), lengths.of(headBytes)) === 1 &&
      (bodyBytes === 0 || EVP_CipherUpdate(this.#body, body, lengthAt, body, lengths.of(bodyBytes)) === 1) &&
      EVP_CipherFinal_ex(this.#body, endAt, lengthAt) === 1;
    if (isAuthentic) return bodyBytes;
    this.#functions.ERR_clear_error();
    return -1;
  }

  /** The nonce is the IV XOR the packet number (RFC 9001 §5.3). */
  #setNonce(packetNumber: number): void {
    if (this.#closed) throw new Error("the keys of this packet were given up");
    const { numbers, nonceAt } = this.#ciphers;
    numbers.setUint32(0, this.#iv0);
    numbers.setUint32(4, this.#iv1 ^ Math.floor(packetNumber / 2 ** 32));
    numbers.setUint32(8, this.#iv2 ^ packetNumber);
    if (this.#functions.EVP_CipherInit_ex(this.#body, NULL, NULL, NULL, nonceAt, MINUS_ONE) !== 1)
      throw this.#broken();
  }

  /** From 16 bytes at this address. */
  #makeMask(sample: bigint): void {
    if (this.#closed) throw new Error("the keys of this packet were given up");
    if (!this.header.makeMask(sample)) throw this.#broken();
  }

  /** Long headers show more of it (RFC 9001 §5.4.1). */
  #maskOfFirst(first: number): number {
    return byteAt(this.#ciphers.scratch, MASK_AT) & ((first & LONG_HEADER) === 0 ? 0x1f : 0x0f);
  }

  #maskNumber(bytes: Uint8Array, numberAt: number, numberBytes: number): void {
    const { scratch } = this.#ciphers;
    for (let index = 0; index < numberBytes; index++)
      bytes[numberAt + index] = byteAt(bytes, numberAt + index) ^ byteAt(scratch, MASK_AT + 1 + index);
  }

  #broken(): Error {
    this.#functions.ERR_clear_error();
    return new Error("libcrypto refuses a call that it took before");
  }

  [Symbol.dispose](): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#ciphers.free(this, this.#body);
    this.header.release();
  }
}

export interface PacketLayout {
  /** Up to the end of the packet number. */
  readonly headBytes: number;
  readonly numberBytes: number;
  /** Plain; at least 4 together with the packet number, so that there is a sample. */
  readonly bodyBytes: number;
}
