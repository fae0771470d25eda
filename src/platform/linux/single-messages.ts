import { type Evp, type EvpName, KEY_BYTES } from "./evp.ts";

const SEAL = 1;
const OPEN = 0;

/** One message under a key that is used for no other. */
export interface SingleMessage {
  readonly key: Uint8Array;
  /** 12 bytes. */
  readonly nonce: Uint8Array;
  /** Authenticated only. */
  readonly aad?: Uint8Array | undefined;
}

/**
 * Messages of which each has a key of its own: one context a cipher and direction takes one key after the other, and keeps
 * the last one until then. Of one thread, for as long as it lives.
 */
export class SingleMessages {
  readonly #evp: Evp;
  readonly #sealing = new Map<EvpName, bigint>();
  readonly #opening = new Map<EvpName, bigint>();

  constructor(evp: Evp) {
    this.#evp = evp;
  }

  /** Writes ciphertext and tag into `out` at `at`; answers with the offset behind them. Throws where they do not fit. */
  sealInto(name: EvpName, message: SingleMessage, plain: Uint8Array, out: Uint8Array, at: number): number {
    const context = this.#begin(this.#sealing, name, message, SEAL);
    return this.#evp.seal(context, out, at, plain);
  }

  /** Writes the plain bytes into `out` from its start; answers with how many, or -1 where the tag is wrong. */
  openInto(name: EvpName, message: SingleMessage, sealed: Uint8Array, out: Uint8Array): number {
    const context = this.#begin(this.#opening, name, message, OPEN);
    return this.#evp.unseal(context, out, 0, sealed);
  }

  #begin(
    contexts: Map<EvpName, bigint>,
    name: EvpName,
    { key, nonce, aad }: SingleMessage,
    direction: typeof SEAL | typeof OPEN,
  ): bigint {
    if (key.length !== KEY_BYTES[name]) throw new RangeError(`${name}: a key of ${key.length} bytes`);
    let context = contexts.get(name);
    if (context === undefined) contexts.set(name, (context = this.#evp.openContext(name, key, direction)));
    else this.#evp.changeKey(context, key);
    this.#evp.begin(context, nonce, aad);
    return context;
  }
}
