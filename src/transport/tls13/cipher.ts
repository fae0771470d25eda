/** AEAD for records: the runtime's libcrypto by FFI where it is there, `node:crypto` elsewhere. */
import { type CipherGCMTypes, createCipheriv, createDecipheriv } from "node:crypto";
import { keepAead, type KeptAead } from "#platform/aead.ts";
import type { CipherSuite } from "./cipher-suites.ts";

export const TAG_BYTES = 16;
const TAG = { authTagLength: TAG_BYTES } as const;

/** `key` has the suite's length. `portable`: by `node:crypto` alone. */
export function openCipher({ aead }: Pick<CipherSuite, "aead">, key: Uint8Array, portable = false): KeptAead {
  const kept = portable ? null : keepAead(aead, key);
  if (kept !== null) return kept;
  return new NodeAead(aead as CipherGCMTypes, key); // its types know no third name; the calls are the same
}

class NodeAead implements KeptAead {
  readonly nonceBytes = 12;
  readonly #name: CipherGCMTypes;
  #key: Uint8Array | null;

  constructor(name: CipherGCMTypes, key: Uint8Array) {
    this.#name = name;
    this.#key = key;
  }

  sealInto(out: Uint8Array, at: number, nonce: Uint8Array, plain: Uint8Array, aad?: Uint8Array): number {
    const cipher = createCipheriv(this.#name, this.#use(), nonce, TAG);
    if (aad !== undefined) cipher.setAAD(aad);
    out.set(cipher.update(plain), at);
    cipher.final();
    out.set(cipher.getAuthTag(), at + plain.length);
    return at + plain.length + TAG_BYTES;
  }

  openInto(out: Uint8Array, at: number, nonce: Uint8Array, sealed: Uint8Array, aad?: Uint8Array): number {
    const size = sealed.length - TAG_BYTES;
    if (size < 0) return -1;
    const decipher = createDecipheriv(this.#name, this.#use(), nonce, TAG);
    if (aad !== undefined) decipher.setAAD(aad);
    decipher.setAuthTag(sealed.subarray(size));
    const plain = decipher.update(sealed.subarray(0, size));
    try {
      decipher.final();
    } catch {
      return -1;
    }
    out.set(plain, at);
    return at + size;
  }

  #use(): Uint8Array {
    if (this.#key === null) throw new Error("the cipher was closed");
    return this.#key;
  }

  [Symbol.dispose](): void {
    this.#key = null;
  }
}
