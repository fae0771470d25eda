/**
 * The secrets of the traffic of TLS 1.3 (RFC 8446 §7.1) in connections of the libssl inside the Node binary. Behind a handshake the
 * library has no call that tells them. They lie in its object, and where is found by trial: a place is right when what its secret
 * leads to opens a record. docs/adr/0123-bulk-over-tls-is-sealed-without-libssl.md
 */
import type * as Ffi from "node:ffi";
import { openLinuxFfi } from "#platform/ffi.ts";

const SIGNATURES = {
  OpenSSL_version_num: { arguments: [], return: "u64" },
  SSL_version: { arguments: ["pointer"], return: "i32" },
  SSL_is_server: { arguments: ["pointer"], return: "i32" },
  SSL_get_current_cipher: { arguments: ["pointer"], return: "pointer" },
  SSL_CIPHER_get_protocol_id: { arguments: ["pointer"], return: "u16" },
  malloc_usable_size: { arguments: ["pointer"], return: "u64" },
} as const;

/** Whose objects begin where their memory does. */
const MAJOR_VERSION = 3n;
const TLS_1_3 = 0x0304;
/** Where secrets begin, as numbers in front of them are aligned. */
const STEP_BYTES = 4;
/** Of a secret; addresses, numbers and flags have more. */
const MOST_ZEROS = 3;

/** To try all places takes some 50 ms; where none is known, it is done once in so long. */
const SCAN_MS = 1_000;
/** In a row: then the place is another one. A peer can seal a record by what else it knows of the object, and have us keep a wrong one. */
const MOST_MISSES = 3;

/** Whose records: what comes in, or what goes out. */
export type Side = "inward" | "outward";

/** Where a secret lies, so far behind the start of the object. */
interface Place {
  /** -1: it is not known. */
  at: number;
  misses: number;
  scannedAtMs: number;
}

const newPlace = (): Place => ({ at: -1, misses: 0, scannedAtMs: -Infinity });

export class SslSecrets {
  readonly #ffi: typeof Ffi;
  readonly #functions;
  readonly #places = { client: newPlace(), server: newPlace() };

  /** Null where this runtime's library is another one. */
  static open(): SslSecrets | null {
    const ffi = openLinuxFfi();
    if (ffi === null) return null;
    try {
      const { functions } = ffi.dlopen(null, SIGNATURES);
      const isKnown = functions.OpenSSL_version_num() >> 28n === MAJOR_VERSION;
      return isKnown ? new SslSecrets(ffi, functions) : null;
    } catch {
      return null; // a runtime linked without these names
    }
  }

  private constructor(
    ffi: typeof Ffi,
    functions: ReturnType<typeof Ffi.dlopen<typeof SIGNATURES>>["functions"],
  ) {
    this.#ffi = ffi;
    this.#functions = functions;
  }

  /** The number of its cipher suite; 0: it does not speak TLS 1.3. */
  suiteOf(ssl: bigint): number {
    const { SSL_version, SSL_get_current_cipher, SSL_CIPHER_get_protocol_id } = this.#functions;
    if (SSL_version(ssl) !== TLS_1_3) return 0;
    const cipher = SSL_get_current_cipher(ssl);
    return cipher === 0n ? 0 : SSL_CIPHER_get_protocol_id(cipher);
  }

  /** A copy of the present secret, of so many bytes, as soon as one `fits`; null: none does. */
  find(ssl: bigint, side: Side, bytes: number, fits: (secret: Uint8Array) => boolean): Uint8Array | null {
    const isServer = this.#functions.SSL_is_server(ssl) === 1;
    const place = this.#places[isServer === (side === "outward") ? "server" : "client"];
    const nowMs = performance.now();
    const scans = place.at < 0;
    if (scans && nowMs - place.scannedAtMs < SCAN_MS) return null;
    if (scans) place.scannedAtMs = nowMs;
    const size = Number(this.#functions.malloc_usable_size(ssl));
    const object = this.#ffi.toBuffer(ssl, size, true);
    try {
      const places = scans ? randomPlaces(object, bytes) : [place.at];
      const at = places.find((one) => fits(object.subarray(one, one + bytes))) ?? -1;
      place.misses = at < 0 && !scans ? place.misses + 1 : 0;
      if (at >= 0 || place.misses === MOST_MISSES) place.at = at;
      return at < 0 ? null : Buffer.from(object.subarray(at, at + bytes));
    } finally {
      object.fill(0);
    }
  }
}

/** Where so many bytes look like random ones. */
function randomPlaces(object: Buffer, bytes: number): readonly number[] {
  const places: number[] = [];
  for (let at = 0; at + bytes <= object.length; at += STEP_BYTES) {
    const zeros = object.subarray(at, at + bytes).filter((byte) => byte === 0);
    if (zeros.length <= MOST_ZEROS) places.push(at);
  }
  return places;
}
