import { Evp } from "#platform/linux/evp.ts";
import { RecentWords } from "#platform/linux/machine-words.ts";
import { BUFFER_BYTES } from "#platform/linux/relay-calls.ts";

// A chunk, in both editions (SIP004, SIP022 §3.1): LENGTH(2, big endian) TAG(16) PAYLOAD TAG(16), each half a message of
// the cipher. The nonce counts the messages of its direction, little endian.
export const LENGTH_BYTES = 2;
export { TAG_BYTES } from "#platform/linux/evp.ts";

/** More than what is left of one chunk, the longest next one, and what the buffer becomes when it is sealed. */
const WIRE_BYTES = BUFFER_BYTES + 3 * 66 * 1024;

/** Of TLS: a record of a few bytes, and behind it the sealed one. */
const SCRATCH_BYTES = 64;

/** What the wires of one thread that seal by libcrypto share: the ciphers, and memory for what is on its way from or to a socket. */
export class CipherMemory {
  readonly evp: Evp;
  /** The thread's buffer, of plain bytes. */
  readonly plain: Uint8Array;
  /** Of its bytes, as far behind its start. */
  readonly plainAddresses: RecentWords;
  /** Of sealed bytes; nothing in it outlasts a call of a port. */
  readonly wire = new Uint8Array(new ArrayBuffer(WIRE_BYTES));
  readonly wireAt: bigint;
  readonly wireAddresses: RecentWords;
  /** What is put aside of the sealed bytes while a wire below uses that memory. */
  readonly aside = new Uint8Array(WIRE_BYTES);
  /** Of one chunk. */
  readonly length = new Uint8Array(new ArrayBuffer(LENGTH_BYTES));
  readonly lengthAt: bigint;
  /** Of one short record. */
  readonly scratch = new Uint8Array(new ArrayBuffer(SCRATCH_BYTES));
  readonly scratchAt: bigint;

  private constructor(evp: Evp, plain: Uint8Array) {
    this.evp = evp;
    this.plain = plain;
    this.plainAddresses = new RecentWords(evp.pin(plain));
    this.wireAt = evp.pin(this.wire);
    this.wireAddresses = new RecentWords(this.wireAt);
    this.lengthAt = evp.pin(this.length);
    this.scratchAt = evp.pin(this.scratch);
  }

  /** Of the thread that calls. Null: its libcrypto cannot be had. */
  static open(plain: Uint8Array): CipherMemory | null {
    const evp = Evp.open();
    return evp === null ? null : new CipherMemory(evp, plain);
  }
}
