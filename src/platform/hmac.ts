/** Digests and HMAC for the many small pieces of a key schedule: by the runtime's own libcrypto through FFI where it is there, else by `node:crypto`. */
import { createHash, createHmac, type Hash } from "node:crypto";
import { Hmac, type HmacHash } from "./linux/hmac.ts";

export type { HmacHash } from "./linux/hmac.ts";

const NOTHING = new Uint8Array(0);

interface Library {
  hmac?: Hmac | null;
}
/** One for each thread, loaded at the first use and kept. */
const library: Library = {};

function open(): Hmac | null {
  if (library.hmac === undefined) library.hmac = Hmac.open();
  return library.hmac;
}

/** Of all parts, one behind the other. */
export function hmac(hash: HmacHash, key: Uint8Array, ...data: readonly Uint8Array[]): Buffer {
  const made = open()?.of(hash, key, data) ?? null;
  if (made !== null) return made;
  const slow = createHmac(hash, key);
  for (const part of data) slow.update(part);
  return slow.digest();
}

/** Of all parts, one behind the other. */
export function digest(hash: HmacHash, parts: readonly Uint8Array[]): Buffer {
  const made = open()?.digest(hash, parts) ?? null;
  if (made !== null) return made;
  const slow = createHash(hash);
  for (const part of parts) slow.update(part);
  return slow.digest();
}

/** A digest of what comes piece by piece, which is asked for in between. */
export interface RunningDigest {
  add(data: Uint8Array): void;
  /** Of everything so far, and of `further` as if it had been added. */
  digest(further?: Uint8Array): Buffer;
}

export function runningDigest(hash: HmacHash): RunningDigest {
  const fast = open();
  return fast === null ? new SlowDigest(createHash(hash)) : new FastDigest(fast, hash, fast.begin(hash));
}

class FastDigest implements RunningDigest {
  readonly #library: Hmac;
  readonly #hash: HmacHash;
  readonly #context: Uint8Array;

  constructor(library: Hmac, hash: HmacHash, context: Uint8Array) {
    this.#library = library;
    this.#hash = hash;
    this.#context = context;
  }

  add(data: Uint8Array): void {
    this.#library.add(this.#hash, this.#context, data);
  }

  digest(further: Uint8Array = NOTHING): Buffer {
    return this.#library.soFar(this.#hash, this.#context, further);
  }
}

class SlowDigest implements RunningDigest {
  readonly #hash: Hash;

  constructor(hash: Hash) {
    this.#hash = hash;
  }

  add(data: Uint8Array): void {
    this.#hash.update(data);
  }

  digest(further: Uint8Array = NOTHING): Buffer {
    return this.#hash.copy().update(further).digest();
  }
}
