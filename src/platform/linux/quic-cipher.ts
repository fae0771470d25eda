/** Keys of packet protection of QUIC (RFC 9001 §5.3, §5.4) by the EVP interface of the libcrypto inside the Node binary. */
import type * as Ffi from "node:ffi";
import { HeaderKey, PacketCipher } from "./packet-cipher.ts";
import { PacketMemory } from "./packet-memory.ts";
import { QuicCipherCalls } from "./quic-cipher-calls.ts";
import { openLinuxFfi } from "#platform/ffi.ts";

/** By the number of the TLS cipher suite. */
const SUITES = {
  0x1301: { aead: "AES-128-GCM", mask: "AES-128-ECB", keyBytes: 16 },
  0x1302: { aead: "AES-256-GCM", mask: "AES-256-ECB", keyBytes: 32 },
  0x1303: { aead: "ChaCha20-Poly1305", mask: "ChaCha20", keyBytes: 32 },
} as const;
type Suite = keyof typeof SUITES;

interface Kinds {
  readonly aead: bigint;
  readonly mask: bigint;
}

/** Of one thread. */
export class QuicCiphers {
  readonly #ffi: typeof Ffi;
  readonly #calls: QuicCipherCalls;
  readonly #kinds: Readonly<Record<Suite, Kinds>>;

  /** Null where this runtime has no FFI, or its libcrypto hides what is needed. */
  static open(): QuicCiphers | null {
    const ffi = openLinuxFfi();
    if (ffi === null) return null;
    try {
      return new QuicCiphers(ffi);
    } catch {
      return null; // a runtime with another libcrypto, or linked without names
    }
  }

  constructor(ffi: typeof Ffi) {
    this.#ffi = ffi;
    this.#calls = new QuicCipherCalls(ffi);
    this.#kinds = { 0x1301: this.#fetch(0x1301), 0x1302: this.#fetch(0x1302), 0x1303: this.#fetch(0x1303) };
  }

  #fetch(suite: Suite): Kinds {
    const { aead, mask } = SUITES[suite];
    return { aead: this.#calls.fetch(aead), mask: this.#calls.fetch(mask) };
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
    const { aead, mask } = this.#kindsOf(suite, keys.key);
    if (keys.headerKey.length !== keys.key.length) throw new RangeError("a header's key of another length");
    const header = new HeaderKey(this.#calls, suite, mask, keys.headerKey);
    try {
      return new PacketCipher(this.#calls, aead, keys, seals, header);
    } catch (error) {
      header.release();
      throw error;
    }
  }

  /** The keys of the phase behind that one, whose headers are protected by the same key (RFC 9001 §6.1). Throws likewise. */
  makeNext(
    of: PacketCipher,
    keys: { readonly key: Uint8Array; readonly iv: Uint8Array },
    seals: boolean,
  ): PacketCipher {
    const { aead } = this.#kindsOf(of.header.suite, keys.key);
    const made = new PacketCipher(this.#calls, aead, keys, seals, of.header);
    of.header.share();
    return made;
  }

  #kindsOf(suite: number, key: Uint8Array): Kinds {
    if (!isSuite(suite)) throw new RangeError(`cipher suite ${suite} is not one of QUIC`);
    if (key.length !== SUITES[suite].keyBytes) throw new RangeError("a key of another length");
    return this.#kinds[suite];
  }
}

function isSuite(suite: number): suite is Suite {
  return Object.hasOwn(SUITES, suite);
}
