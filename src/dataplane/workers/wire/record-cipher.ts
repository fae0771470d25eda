import { type DirectionKeys } from "#transport/tls13/direction-keys.ts";
import { HEADER_BYTES } from "#transport/tls13/records.ts";
import type { CipherMemory } from "./cipher-memory.ts";

/** Keys of one direction of TLS 1.3 records, with libcrypto's context, which stays its owner's. */
export class RecordCipher {
  readonly #memory: CipherMemory;
  readonly context: bigint;
  readonly #keys: DirectionKeys;

  constructor(memory: CipherMemory, context: bigint, keys: DirectionKeys) {
    this.#memory = memory;
    this.context = context;
    this.#keys = keys;
  }

  /** The key should be changed now. */
  get isWorn(): boolean {
    return this.#keys.isWorn;
  }

  /** The next record, whose header is at that address. */
  begin(headerAt: bigint): void {
    this.#memory.evp.beginAt(this.context, this.#keys.nextNonce(), headerAt, HEADER_BYTES);
  }

  /** Behind a KeyUpdate. */
  update(): void {
    this.#keys.update();
    this.#memory.evp.changeKey(this.context, this.#keys.key);
  }
}
