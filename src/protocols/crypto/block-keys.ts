import { createCipheriv, createDecipheriv } from "node:crypto";
import { itemAt } from "#lib/at.ts";
import { blockCipher } from "#platform/single-blocks.ts";

/** Frees what keys that were forgotten have in the library. */
const forgotten = new FinalizationRegistry<readonly bigint[]>((contexts) => blockCipher()?.free(contexts));

/** Keys of AES-128, of which the one is looked for under which a block makes sense. */
export class BlockKeys {
  readonly #keys: readonly Uint8Array[];
  /** The library's, one a key, from the first search on; null: there are none. */
  #contexts: readonly bigint[] | null = null;

  constructor(keys: readonly Uint8Array[]) {
    this.#keys = keys;
  }

  /** What the first key gives for which `read` finds something in the block, and its place; null: there is none. */
  find<Found extends {}>(
    block: Uint8Array,
    read: (plain: Buffer) => Found | null,
  ): { readonly index: number; readonly found: Found } | null {
    const open = this.#opener(block);
    for (let index = 0; index < this.#keys.length; index++) {
      const found = read(open(index));
      if (found !== null) return { index, found };
    }
    return null;
  }

  #opener(block: Uint8Array): (index: number) => Buffer {
    const native = blockCipher();
    if (native === null)
      return (index) => {
        const decipher = createDecipheriv("aes-128-ecb", itemAt(this.#keys, index), null);
        return decipher.setAutoPadding(false).update(block);
      };
    const contexts = this.#contexts ?? this.#open(native);
    native.from.set(block);
    return (index) => {
      native.run(itemAt(contexts, index));
      return native.to;
    };
  }

  #open(native: NonNullable<ReturnType<typeof blockCipher>>): readonly bigint[] {
    const contexts = this.#keys.map((key) => native.open(key, "decrypt"));
    forgotten.register(this, contexts);
    return (this.#contexts = contexts);
  }
}

/** One block of 16 bytes, by AES-128. */
export function encryptBlock(key: Uint8Array, block: Uint8Array): Buffer {
  const native = blockCipher();
  if (native === null) return createCipheriv("aes-128-ecb", key, null).setAutoPadding(false).update(block);
  native.from.set(block);
  native.encryptOnce(key);
  return Buffer.from(native.to);
}
