/**
 * Packet protection of QUIC (RFC 9001 §5.3, §5.4) by the EVP interface of the libcrypto inside the Node binary. A context is
 * kept for each key; a packet costs a few calls and no allocation.
 */
import type * as Ffi from "node:ffi";
import { byteAt } from "#lib/at.ts";
import { MINUS_ONE, WORDS } from "./machine-words.ts";
import { PacketMemory, Words } from "./packet-memory.ts";

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
const LONG_HEADER = 0x80;

// Scratch: NONCE(12) .. LENGTH(4) .. END(16) MASK(32) ZEROS(16)
const NONCE_AT = 0;
const LENGTH_AT = 16;
const END_AT = 32;
const MASK_AT = 64;
const ZEROS_AT = 96;
const SCRATCH_BYTES = 112;
/** No UDP payload is longer. */
const MOST_LENGTH = 65_535;
/** The sample begins so far behind the start of the packet number, however long that is (RFC 9001 §5.4.2). */
const SAMPLE_AFTER = 4;
const SAMPLE_BYTES = 16;

type Functions = ReturnType<typeof Ffi.dlopen<typeof SIGNATURES>>["functions"];

/** Of one thread. */
export class QuicCiphers {
  readonly functions: Functions;
  readonly scratch: Uint8Array;
  readonly numbers: DataView;
  /** Where foreign functions find and leave what `scratch` holds. */
  readonly nonceAt: bigint;
  readonly lengthAt: bigint;
  readonly endAt: bigint;
  readonly maskAt: bigint;
  readonly zerosAt: bigint;
  /** Lengths as machine words. */
  readonly lengths = new Words(0n, MOST_LENGTH);
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
    const at = ffi.getRawPointer(this.scratch);
    this.nonceAt = at + BigInt(NONCE_AT);
    this.lengthAt = at + BigInt(LENGTH_AT);
    this.endAt = at + BigInt(END_AT);
    this.maskAt = at + BigInt(MASK_AT);
    this.zerosAt = at + BigInt(ZEROS_AT);
  }

  /** The holder keeps it alive, and with it its addresses good. */
  allocate(bytes: number): PacketMemory {
    const made = new Uint8Array(new ArrayBuffer(bytes));
    return new PacketMemory(made, this.#ffi.getRawPointer(made));
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
    let header: bigint;
    try {
      header = this.#context(mask, keys.headerKey, true);
    } catch (error) {
      this.free([body, NULL]);
      throw error;
    }
    if (suite !== CHACHA) this.functions.EVP_CIPHER_CTX_set_padding(header, 0);
    return new PacketCipher(this, suite, keys.iv, body, header);
  }

  #context(name: (typeof SUITES)[Suite]["aead" | "mask"], key: Uint8Array, seals: boolean): bigint {
    const context = this.functions.EVP_CIPHER_CTX_new();
    if (context === NULL) throw new Error("libcrypto has no memory for a cipher context");
    const memory = this.allocate(key.length);
    memory.bytes.set(key);
    const done = this.functions.EVP_CipherInit_ex(
      context,
      this.functions[name](),
      NULL,
      memory.addresses.of(0),
      NULL,
      seals ? 1n : 0n,
    );
    memory.bytes.fill(0); // it lives to here
    if (done === 1) return context;
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
    const { EVP_CipherInit_ex, EVP_CipherUpdate } = this.#functions;
    const { maskAt, lengthAt, zerosAt } = this.#ciphers;
    // ChaCha20: the sample is counter and nonce, as libcrypto's IV has them, and the mask is the key stream.
    const done =
      this.suite === CHACHA
        ? EVP_CipherInit_ex(this.#header, NULL, NULL, NULL, sample, MINUS_ONE) === 1 &&
          EVP_CipherUpdate(this.#header, maskAt, lengthAt, zerosAt, MASK_SIZE) === 1
        : EVP_CipherUpdate(this.#header, maskAt, lengthAt, sample, SAMPLE_SIZE) === 1;
    if (!done) throw this.#broken();
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
