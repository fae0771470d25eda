/**
 * Packet protection of QUIC (RFC 9001 §5.3, §5.4) by the EVP interface of the libcrypto inside the Node binary. A context is
 * kept for each key; a packet costs a few calls and no allocation.
 */
import type * as Ffi from "node:ffi";
import { byteAt } from "#lib/at.ts";
import { MINUS_ONE, WORDS } from "./machine-words.ts";

const SIGNATURES = {
  EVP_CIPHER_CTX_new: { arguments: [], return: "pointer" },
  EVP_CIPHER_CTX_free: { arguments: ["pointer"], return: "void" },
  EVP_CIPHER_CTX_set_padding: { arguments: ["pointer", "i32"], return: "i32" },
  EVP_CipherInit_ex: { arguments: WORDS[6], return: "i32" },
  EVP_CipherUpdate: { arguments: WORDS[5], return: "i32" },
  EVP_CipherFinal_ex: { arguments: WORDS[3], return: "i32" },
  EVP_CIPHER_CTX_ctrl: { arguments: WORDS[4], return: "i32" },
  EVP_aes_128_gcm: { arguments: [], return: "pointer" },
  EVP_aes_256_gcm: { arguments: [], return: "pointer" },
  EVP_chacha20_poly1305: { arguments: [], return: "pointer" },
  EVP_aes_128_ecb: { arguments: [], return: "pointer" },
  EVP_aes_256_ecb: { arguments: [], return: "pointer" },
  EVP_chacha20: { arguments: [], return: "pointer" },
  ERR_clear_error: { arguments: [], return: "void" },
} as const;

/** By the number of the TLS cipher suite. */
const SUITES = {
  0x1301: { aead: "EVP_aes_128_gcm", mask: "EVP_aes_128_ecb", keyBytes: 16 },
  0x1302: { aead: "EVP_aes_256_gcm", mask: "EVP_aes_256_ecb", keyBytes: 32 },
  0x1303: { aead: "EVP_chacha20_poly1305", mask: "EVP_chacha20", keyBytes: 32 },
} as const;
type Suite = keyof typeof SUITES;
const CHACHA = 0x1303;

const TAG_BYTES = 16;
const TAG_SIZE = 16n;
const EVP_CTRL_AEAD_GET_TAG = 0x10n;
const EVP_CTRL_AEAD_SET_TAG = 0x11n;
const SAMPLE_SIZE = 16n;
const MASK_SIZE = 5n;
const NULL = 0n;

// Scratch: NONCE(12) .. LENGTH(4) .. END(16) MASK(32) ZEROS(16) SAMPLE(16)
const LENGTH_AT = 16;
const END_AT = 32;
const MASK_AT = 64;
const ZEROS_AT = 96;
const SAMPLE_AT = 112;
const SCRATCH_BYTES = 128;
const MAX_HEAD_BYTES = 2048;

/** Memory that stays where it is, and its address. */
export interface Memory {
  readonly bytes: Buffer;
  readonly address: bigint;
}

type Functions = ReturnType<typeof Ffi.dlopen<typeof SIGNATURES>>["functions"];

/** Of one thread. */
export class QuicCiphers {
  readonly functions: Functions;
  readonly scratch: Uint8Array;
  readonly numbers: DataView;
  readonly at: bigint;
  /** A copy of the header of the packet that is opened, without its protection. */
  readonly head: Memory;
  readonly #ffi: typeof Ffi;
  readonly #library;
  /** Frees the contexts of a cipher that was collected without being closed. */
  readonly forgotten = new FinalizationRegistry<readonly [bigint, bigint]>((contexts) => this.free(contexts));

  /** Null where this runtime has no FFI, or its libcrypto hides what is needed. */
  static open(): QuicCiphers | null {
    const ffi = process.platform === "linux" ? process.getBuiltinModule("node:ffi") : undefined;
    if (ffi === undefined) return null;
    try {
      return new QuicCiphers(ffi);
    } catch {
      return null; // a runtime with another libcrypto, or linked without names
    }
  }

  constructor(ffi: typeof Ffi) {
    this.#ffi = ffi;
    this.#library = ffi.dlopen(null, SIGNATURES);
    this.functions = this.#library.functions;
    this.scratch = new Uint8Array(new ArrayBuffer(SCRATCH_BYTES));
    this.numbers = new DataView(this.scratch.buffer);
    this.at = ffi.getRawPointer(this.scratch);
    this.head = this.allocate(MAX_HEAD_BYTES);
  }

  /** The holder of the memory keeps it alive, and with it the address good. */
  allocate(bytes: number): Memory {
    const made = Buffer.from(new ArrayBuffer(bytes));
    return { bytes: made, address: this.#ffi.getRawPointer(made) };
  }

  addressOf(bytes: Uint8Array): bigint {
    return this.#ffi.getRawPointer(bytes);
  }

  /** One direction of one key. Throws for a suite that is not known, or a key of another length. */
  make(
    suite: number,
    keys: { readonly key: Uint8Array; readonly iv: Uint8Array; readonly headerKey: Uint8Array },
    seals: boolean,
  ): PacketCipher {
    if (!isSuite(suite)) throw new RangeError(`cipher suite ${suite} is not one of QUIC`);
    const { aead, mask, keyBytes } = SUITES[suite];
    if (keys.key.length !== keyBytes || keys.headerKey.length !== keyBytes)
      throw new RangeError("a key of another length");
    const body = this.#context(aead, keys.key, seals);
    const header = this.#context(mask, keys.headerKey, true);
    if (suite !== CHACHA) this.functions.EVP_CIPHER_CTX_set_padding(header, 0);
    return new PacketCipher(this, suite, keys.iv, body, header);
  }

  #context(name: (typeof SUITES)[Suite]["aead" | "mask"], key: Uint8Array, seals: boolean): bigint {
    const context = this.functions.EVP_CIPHER_CTX_new();
    const memory = this.allocate(key.length);
    memory.bytes.set(key);
    const done = this.functions.EVP_CipherInit_ex(
      context,
      this.functions[name](),
      NULL,
      memory.address,
      NULL,
      seals ? 1n : 0n,
    );
    memory.bytes.fill(0); // it lives to here
    if (context !== NULL && done === 1) return context;
    this.free([context, NULL]);
    this.functions.ERR_clear_error();
    throw new Error(`libcrypto refuses ${name}`);
  }

  free(contexts: readonly [bigint, bigint]): void {
    for (const context of contexts) if (context !== NULL) this.functions.EVP_CIPHER_CTX_free(context);
  }
}

function isSuite(suite: number): suite is Suite {
  return Object.hasOwn(SUITES, suite);
}

/** The keys of one direction at one level. After `dispose` its methods must not be called. */
export class PacketCipher implements Disposable {
  readonly suite: number;
  readonly #ciphers: QuicCiphers;
  readonly #functions: Functions;
  readonly #iv0: number;
  readonly #iv1: number;
  readonly #iv2: number;
  readonly #body: bigint;
  readonly #header: bigint;
  #closed = false;

  constructor(ciphers: QuicCiphers, suite: number, iv: Uint8Array, body: bigint, header: bigint) {
    const view = new DataView(iv.buffer, iv.byteOffset, iv.byteLength);
    this.suite = suite;
    this.#ciphers = ciphers;
    this.#functions = ciphers.functions;
    this.#iv0 = view.getUint32(0);
    this.#iv1 = view.getUint32(4);
    this.#iv2 = view.getUint32(8);
    this.#body = body;
    this.#header = header;
    ciphers.forgotten.register(this, [body, header], this);
  }

  /**
   * In place: `headBytes` of header with the packet number at its end, `plainBytes` behind it, and room for 16 more. The
   * header is protected, too. `at`: of the packet within the memory.
   */
  seal(memory: Memory, at: number, layout: PacketLayout, packetNumber: number): void {
    const { headBytes, numberBytes, bodyBytes } = layout;
    const { EVP_CipherUpdate, EVP_CipherFinal_ex, EVP_CIPHER_CTX_ctrl } = this.#functions;
    const start = memory.address + BigInt(at);
    const body = start + BigInt(headBytes);
    const size = BigInt(bodyBytes);
    const lengthAt = this.#ciphers.at + BigInt(LENGTH_AT);
    this.#setNonce(packetNumber);
    const done =
      EVP_CipherUpdate(this.#body, NULL, lengthAt, start, BigInt(headBytes)) === 1 &&
      EVP_CipherUpdate(this.#body, body, lengthAt, body, size) === 1 &&
      EVP_CipherFinal_ex(this.#body, this.#ciphers.at + BigInt(END_AT), lengthAt) === 1 &&
      EVP_CIPHER_CTX_ctrl(this.#body, EVP_CTRL_AEAD_GET_TAG, TAG_SIZE, body + size) === 1;
    if (!done) throw this.#broken();
    const numberAt = headBytes - numberBytes;
    this.#makeMask(start + BigInt(numberAt + 4));
    this.#applyMask(memory.bytes, at, at + numberAt, numberBytes);
  }

  /**
   * Removes the protection of the header, of a copy: answers the first byte, and the packet number's low bytes are in
   * `numberOf`; -1 where the packet is too short for it. `packet` is not written to.
   */
  unmask(packet: Uint8Array, numberAt: number): number {
    const { head, scratch } = this.#ciphers;
    if (numberAt + 20 > packet.length || numberAt + 4 > MAX_HEAD_BYTES) return -1;
    // The sample begins four bytes behind the start of the number, however long that is (RFC 9001 §5.4.2).
    for (let index = 0; index < 16; index++)
      scratch[SAMPLE_AT + index] = byteAt(packet, numberAt + 4 + index);
    this.#makeMask(this.#ciphers.at + BigInt(SAMPLE_AT));
    for (let index = 0; index < numberAt + 4; index++) head.bytes[index] = byteAt(packet, index);
    const isLong = (byteAt(packet, 0) & 0x80) !== 0;
    const first = byteAt(packet, 0) ^ (byteAt(scratch, MASK_AT) & (isLong ? 0x0f : 0x1f));
    head.bytes[0] = first;
    for (let index = 0; index <= (first & 3); index++)
      head.bytes[numberAt + index] =
        byteAt(head.bytes, numberAt + index) ^ byteAt(scratch, MASK_AT + 1 + index);
    return first;
  }

  /** Of the header that was unmasked last. */
  numberOf(numberAt: number, numberBytes: number): number {
    let number = 0;
    for (let index = 0; index < numberBytes; index++)
      number = number * 256 + byteAt(this.#ciphers.head.bytes, numberAt + index);
    return number;
  }

  /**
   * Writes the plain bytes of the packet whose header was unmasked last into `out` at `at`, which has room for them; answers
   * how many they are, or -1 where the tag is wrong, and then what was written is not to be used.
   */
  open(packet: Uint8Array, headBytes: number, packetNumber: number, out: Memory, at: number): number {
    const size = packet.length - headBytes - TAG_BYTES;
    if (size < 0 || at + size > out.bytes.length) return -1;
    const { EVP_CipherUpdate, EVP_CipherFinal_ex, EVP_CIPHER_CTX_ctrl } = this.#functions;
    const { head } = this.#ciphers;
    const lengthAt = this.#ciphers.at + BigInt(LENGTH_AT);
    const body = this.#ciphers.addressOf(packet) + BigInt(headBytes);
    const to = out.address + BigInt(at);
    const bytes = BigInt(size);
    this.#setNonce(packetNumber);
    const isAuthentic =
      EVP_CIPHER_CTX_ctrl(this.#body, EVP_CTRL_AEAD_SET_TAG, TAG_SIZE, body + bytes) === 1 &&
      EVP_CipherUpdate(this.#body, NULL, lengthAt, head.address, BigInt(headBytes)) === 1 &&
      (size === 0 || EVP_CipherUpdate(this.#body, to, lengthAt, body, bytes) === 1) &&
      EVP_CipherFinal_ex(this.#body, this.#ciphers.at + BigInt(END_AT), lengthAt) === 1;
    if (isAuthentic) return size;
    this.#functions.ERR_clear_error();
    return -1;
  }

  /** The nonce is the IV XOR the packet number (RFC 9001 §5.3). */
  #setNonce(packetNumber: number): void {
    if (this.#closed) throw new Error("the keys of this packet were given up");
    const { numbers, at } = this.#ciphers;
    numbers.setUint32(0, this.#iv0);
    numbers.setUint32(4, this.#iv1 ^ Math.floor(packetNumber / 2 ** 32));
    numbers.setUint32(8, this.#iv2 ^ packetNumber);
    if (this.#functions.EVP_CipherInit_ex(this.#body, NULL, NULL, NULL, at, MINUS_ONE) !== 1)
      throw this.#broken();
  }

  /** From 16 bytes at this address. */
  #makeMask(sample: bigint): void {
    if (this.#closed) throw new Error("the keys of this packet were given up");
    const { EVP_CipherInit_ex, EVP_CipherUpdate } = this.#functions;
    const { at } = this.#ciphers;
    const [mask, length] = [at + BigInt(MASK_AT), at + BigInt(LENGTH_AT)];
    // ChaCha20: the sample is counter and nonce, as libcrypto's IV has them, and the mask is the key stream.
    const done =
      this.suite === CHACHA
        ? EVP_CipherInit_ex(this.#header, NULL, NULL, NULL, sample, MINUS_ONE) === 1 &&
          EVP_CipherUpdate(this.#header, mask, length, at + BigInt(ZEROS_AT), MASK_SIZE) === 1
        : EVP_CipherUpdate(this.#header, mask, length, sample, SAMPLE_SIZE) === 1;
    if (!done) throw this.#broken();
  }

  #applyMask(bytes: Uint8Array, first: number, numberAt: number, numberBytes: number): void {
    const { scratch } = this.#ciphers;
    const isLong = (byteAt(bytes, first) & 0x80) !== 0;
    bytes[first] = byteAt(bytes, first) ^ (byteAt(scratch, MASK_AT) & (isLong ? 0x0f : 0x1f));
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
    this.#ciphers.forgotten.unregister(this);
    this.#ciphers.free([this.#body, this.#header]);
  }
}

export interface PacketLayout {
  /** Up to the end of the packet number. */
  readonly headBytes: number;
  readonly numberBytes: number;
  /** Plain; at least 4 together with the packet number, so that there is a sample. */
  readonly bodyBytes: number;
}
