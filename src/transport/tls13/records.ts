/** Records of TLS 1.3: TYPE(1) VERSION(2) LENGTH(2) FRAGMENT(length) (RFC 8446 §5). For either role. */
import { byteAt } from "#lib/at.ts";
import type { ByteQueue } from "#lib/byte-queue.ts";
import type { KeptAead } from "#platform/aead.ts";
import { TlsFault } from "./alerts.ts";
import { openCipher, TAG_BYTES } from "./cipher.ts";
import type { CipherSuite } from "./cipher-suites.ts";
import { DirectionKeys } from "./direction-keys.ts";
import { lastBeforePadding } from "./padding.ts";

export const RECORD = { changeCipherSpec: 20, alert: 21, handshake: 22, applicationData: 23 } as const;
export const HEADER_BYTES = 5;
/** Content of one record at most. */
export const MAX_CONTENT_BYTES = 2 ** 14;
const MAX_PLAIN_BYTES = MAX_CONTENT_BYTES;
/** Content, its type, padding and tag. */
export const MAX_SEALED_BYTES = MAX_CONTENT_BYTES + 256;
/** The content's type and the tag. */
export const SEALED_EXTRA_BYTES = 1 + TAG_BYTES;

/** One direction with a new owner. */
export interface GivenDirection {
  /** Of libcrypto: an address, and the new owner's to free. */
  readonly context: bigint;
  /** The present traffic secret. */
  readonly secret: Uint8Array;
  /** Records so far with its key. */
  readonly sequence: number;
}

export interface RawRecord {
  readonly type: number;
  /** Authenticated with the content, where there is a key. */
  readonly header: Buffer;
  readonly body: Buffer;
}

/** The next record, taken from the queue; null: it is not there yet. Throws `TlsFault`. */
export function takeRecord(queue: ByteQueue): RawRecord | null {
  const header = queue.peek(HEADER_BYTES);
  if (header === null) return null;
  const type = byteAt(header, 0);
  if (type < RECORD.changeCipherSpec || type > RECORD.applicationData || byteAt(header, 1) !== 3)
    throw new TlsFault("unexpected_message", "the peer does not speak TLS");
  const size = header.readUInt16BE(3);
  if (size > (type === RECORD.applicationData ? MAX_SEALED_BYTES : MAX_PLAIN_BYTES))
    throw new TlsFault("record_overflow", `a record of ${size} bytes`);
  const record = queue.take(HEADER_BYTES + size);
  if (record === null) return null;
  return { type, header: record.subarray(0, HEADER_BYTES), body: record.subarray(HEADER_BYTES) };
}

/** A record without protection. `version`: 0x0301 for a first ClientHello, else 0x0303 (RFC 8446 §5.1). */
export function plainRecord(type: number, body: Uint8Array, version = 0x0303): Buffer {
  const record = Buffer.allocUnsafe(HEADER_BYTES + body.length);
  writeHeader(record, 0, type, body.length, version);
  record.set(body, HEADER_BYTES);
  return record;
}

function writeHeader(out: Buffer, at: number, type: number, size: number, version = 0x0303): void {
  out[at] = type;
  out.writeUInt16BE(version, at + 1);
  out.writeUInt16BE(size, at + 3);
}

/** Keys and cipher of one direction. */
class Protection implements Disposable {
  readonly #portable: boolean;
  readonly keys: DirectionKeys;
  cipher: KeptAead;

  constructor(suite: CipherSuite, secret: Buffer, portable: boolean, sequence: number) {
    this.#portable = portable;
    this.keys = new DirectionKeys(suite, secret, sequence);
    this.cipher = openCipher(suite, this.keys.key, portable);
  }

  update(): void {
    this.keys.update();
    this.cipher[Symbol.dispose]();
    this.cipher = openCipher(this.keys.suite, this.keys.key, this.#portable);
  }

  /** What a worker goes on with; null: the cipher is `node:crypto`'s, which has nothing to give. */
  giveAway(direction: "sealing" | "opening"): GivenDirection | null {
    const context = this.cipher.giveAway?.(direction);
    return context === undefined ? null : { context, secret: this.keys.secret, sequence: this.keys.sequence };
  }

  [Symbol.dispose](): void {
    this.cipher[Symbol.dispose]();
  }
}

/** Seals records of one direction. */
export class RecordSealer implements Disposable {
  readonly #protection: Protection;
  /** The peer's limit of content in one record (RFC 8449). */
  readonly #mostContent: number;

  /** `portable`: by `node:crypto` alone. `sequence`: of records that were sealed with this secret already. */
  constructor(
    suite: CipherSuite,
    secret: Buffer,
    { mostContent = MAX_CONTENT_BYTES, portable = false, sequence = 0 } = {},
  ) {
    this.#protection = new Protection(suite, secret, portable, sequence);
    this.#mostContent = mostContent;
  }

  /** The key should be changed now. */
  get isWorn(): boolean {
    return this.#protection.keys.isWorn;
  }

  /**
   * As many records as it takes; one without content where there is none. `recordBytes`: the length of each record with its
   * header, reached by padding where the content is shorter; 0: no padding.
   */
  seal(type: number, content: Uint8Array, recordBytes = 0): Buffer {
    const most = this.#mostContent;
    const records = Math.max(1, Math.ceil(content.length / most));
    const least = HEADER_BYTES + SEALED_EXTRA_BYTES;
    const out = Buffer.allocUnsafe(records * Math.max(recordBytes, least) + content.length);
    let end = 0;
    for (let from = 0; from < content.length || from === 0; from += most)
      end = this.#sealOne(out, end, type, content.subarray(from, from + most), recordBytes);
    return out.subarray(0, end);
  }

  /** Content and type are laid where the cipher seals them: it takes them in one piece. */
  #sealOne(out: Buffer, at: number, type: number, content: Uint8Array, recordBytes: number): number {
    const size = Math.max(content.length + 1, recordBytes - HEADER_BYTES - TAG_BYTES);
    if (size > MAX_SEALED_BYTES - TAG_BYTES) throw new RangeError(`a record of ${size} bytes`);
    writeHeader(out, at, RECORD.applicationData, size + TAG_BYTES);
    const from = at + HEADER_BYTES;
    const plain = out.subarray(from, from + size);
    plain.set(content);
    plain[content.length] = type;
    plain.fill(0, content.length + 1);
    const { cipher, keys } = this.#protection;
    return cipher.sealInto(out, from, keys.nextNonce(), plain, out.subarray(at, from));
  }

  /** The direction has a new owner. */
  giveAway(): GivenDirection | null {
    return this.#protection.giveAway("sealing");
  }

  /** As those who go on with it need it. */
  get state(): Omit<GivenDirection, "context"> {
    const { secret, sequence } = this.#protection.keys;
    return { secret, sequence };
  }

  /** Its cipher is one that a worker can go on with. */
  get canBeGiven(): boolean {
    return this.#protection.cipher.giveAway !== undefined;
  }

  /** The most content of one record. */
  get mostContent(): number {
    return this.#mostContent;
  }

  /** Behind a KeyUpdate that was sealed. */
  update(): void {
    this.#protection.update();
  }

  [Symbol.dispose](): void {
    this.#protection[Symbol.dispose]();
  }
}

export interface OpenedRecord {
  readonly type: number;
  readonly content: Buffer;
}

/** Opens records of one direction. */
export class RecordOpener implements Disposable {
  readonly #protection: Protection;

  /** As those of `RecordSealer`. */
  constructor(suite: CipherSuite, secret: Buffer, { portable = false, sequence = 0 } = {}) {
    this.#protection = new Protection(suite, secret, portable, sequence);
  }

  /** Of type application data, as all protected records are. Throws `TlsFault`. */
  open({ header, body }: RawRecord): OpenedRecord {
    const size = body.length - TAG_BYTES;
    if (size < 1) throw new TlsFault("bad_record_mac", "a protected record without content");
    const plain = Buffer.allocUnsafe(size);
    const { cipher, keys } = this.#protection;
    if (cipher.openInto(plain, 0, keys.nextNonce(), body, header) < 0)
      throw new TlsFault("bad_record_mac", "a record that is not authentic");
    const end = lastBeforePadding(plain, 0, size);
    if (end < 0) throw new TlsFault("unexpected_message", "a record of padding alone");
    if (end > MAX_CONTENT_BYTES) throw new TlsFault("record_overflow", `${end} bytes in one record`);
    return { type: byteAt(plain, end), content: plain.subarray(0, end) };
  }

  /** The same of a record that stays the next one. */
  preview(record: RawRecord): OpenedRecord {
    try {
      return this.open(record);
    } finally {
      this.#protection.keys.stepBack();
    }
  }

  /** As those who go on with it need it. */
  get state(): Omit<GivenDirection, "context"> {
    const { secret, sequence } = this.#protection.keys;
    return { secret, sequence };
  }

  /** The direction has a new owner. */
  giveAway(): GivenDirection | null {
    return this.#protection.giveAway("opening");
  }

  /** Behind the peer's KeyUpdate. */
  update(): void {
    this.#protection.update();
  }

  [Symbol.dispose](): void {
    this.#protection[Symbol.dispose]();
  }
}
