/** What follows a handshake: records that look like application data of TLS 1.3, or like random bytes. */
import type { Cipheriv } from "node:crypto";
import { ProtocolError } from "#core/errors.ts";
import type { DetachedState } from "#core/wire-state.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import type { DepartingCodec } from "#net/stream/departing-stream.ts";
import { TAG_BYTES } from "#protocols/crypto/aead.ts";
import type { RecordConnection } from "#transport/record-connection.ts";
import type { CountedAead } from "./cipher.ts";

// Record: 17 03 03 LENGTH(2) SEALED(LENGTH); the header is the additional data
const HEADER_BYTES = 5;
const MOST_PLAIN_BYTES = 8192;
/** What older peers write at most. */
const MOST_SEALED_BYTES = 17_000;
const EMPTY = Buffer.alloc(0);

export interface WritingSide {
  readonly aead: CountedAead;
  /** Over the headers; null: they are plain. */
  readonly mask: Cipheriv | null;
}

export interface ReadingSide {
  readonly aead: CountedAead;
  readonly mask: Cipheriv | null;
}

/** Reads what precedes the peer's first record. Null: it has not arrived whole. Throws `ProtocolError`. */
export type Opening = (arrived: ByteQueue) => ReadingSide | null;

export interface RecordSides {
  readonly writing: WritingSide;
  /** Sent in front of the first record. */
  readonly prelude: Buffer;
  readonly opening: Opening;
  /** Called once when the peer's first record does not open. */
  readonly onRefused?: () => void;
}

/** For streams that stay in their records, as a codec, and for those that may leave them, as a connection. */
export class RecordCodec implements DepartingCodec, RecordConnection {
  readonly isSecure = true;
  /** The protocol has no word for the end. */
  readonly hasEnded = false;
  readonly wireKind = "encrypted";
  readonly #writing: WritingSide;
  readonly #opening: Opening;
  readonly #onRefused: (() => void) | undefined;
  readonly #arrived = new ByteQueue();
  #prelude: Buffer;
  #reading: ReadingSide | null = null;
  /** Of the record under way; null: its header has not come. */
  #header: Buffer | null = null;
  #hasOpened = false;

  constructor({ writing, prelude, opening, onRefused }: RecordSides) {
    this.#writing = writing;
    this.#prelude = prelude;
    this.#opening = opening;
    this.#onRefused = onRefused;
  }

  seal(plain: Buffer): Buffer {
    const prelude = this.#prelude;
    this.#prelude = EMPTY;
    const records = Math.ceil(plain.length / MOST_PLAIN_BYTES);
    const out = Buffer.allocUnsafe(prelude.length + plain.length + records * (HEADER_BYTES + TAG_BYTES));
    let to = prelude.copy(out);
    for (let at = 0; at < plain.length; at += MOST_PLAIN_BYTES)
      to = this.#sealOne(out, to, plain.subarray(at, at + MOST_PLAIN_BYTES));
    return out;
  }

  #sealOne(out: Buffer, at: number, plain: Buffer): number {
    const { aead, mask } = this.#writing;
    out.writeUInt32BE(0x17030300, at);
    out.writeUInt16BE(plain.length + TAG_BYTES, at + 3);
    const header = out.subarray(at, at + HEADER_BYTES);
    const end = aead.sealInto(out, at + HEADER_BYTES, plain, header);
    if (mask !== null) header.set(mask.update(header));
    return end;
  }

  sealEnd(): Buffer | null {
    const prelude = this.#prelude;
    this.#prelude = EMPTY;
    return prelude.length > 0 ? prelude : null;
  }

  open(wire: Buffer, emit: (plain: Buffer) => void): void {
    this.feed(wire);
    for (let plain = this.read(); plain !== null; plain = this.read()) emit(plain);
  }

  start(): void {}

  feed(bytes: Buffer): void {
    this.#arrived.push(bytes);
  }

  read(): Buffer | null {
    try {
      this.#reading ??= this.#opening(this.#arrived);
      if (this.#reading === null) return null;
      let plain = this.#openOne(this.#reading);
      while (plain?.length === 0) plain = this.#openOne(this.#reading);
      if (plain !== null) this.#hasOpened = true;
      return plain;
    } catch (error) {
      if (!this.#hasOpened) this.#onRefused?.();
      this.#hasOpened = true; // reported once
      throw error;
    }
  }

  write(payload: Buffer): Buffer {
    return this.seal(payload);
  }

  end(): Buffer {
    return this.sealEnd() ?? EMPTY;
  }

  takeOutput(): null {
    return null;
  }

  get unreadBytes(): number {
    return this.#arrived.length + (this.#header?.length ?? 0);
  }

  takeUnread(): Buffer {
    return this.#arrived.takeAll();
  }

  /** Both directions are under way, and no mask goes on. */
  get canDepart(): boolean {
    const { aead, mask } = this.#writing;
    const reading = this.#reading;
    return (
      reading !== null && reading.aead.canBeGiven && aead.canBeGiven && !mask && this.#prelude.length === 0
    );
  }

  /** For the wire `encrypted` of a worker, or a layer of that form. */
  depart(): DetachedState {
    const opening = this.#reading?.aead.giveAway("opening") ?? null;
    const sealing = this.#writing.aead.giveAway("sealing");
    if (opening === null || sealing === null) throw new Error("these records cannot be given away");
    const unread = Buffer.concat([this.#header ?? EMPTY, this.#arrived.takeAll()]);
    this.#header = null;
    return {
      numbers: [Number(opening.context), Number(sealing.context), opening.count, sealing.count],
      unread: unread.length === 0 ? null : Uint8Array.from(unread),
    };
  }

  /** Goes on masking headers where the records are left; null: nothing is masked. */
  get outwardMask(): Cipheriv | null {
    return this.#writing.mask;
  }

  /** Only behind the peer's first record. */
  get inwardMask(): Cipheriv | null {
    return this.#reading?.mask ?? null;
  }

  #openOne({ aead, mask }: ReadingSide): Buffer | null {
    if (this.#header === null) {
      const bytes = this.#arrived.take(HEADER_BYTES);
      if (bytes === null) return null;
      this.#header = checkedHeader(mask === null ? Buffer.from(bytes) : mask.update(bytes));
    }
    const sealed = this.#arrived.take(this.#header.readUInt16BE(3));
    if (sealed === null) return null;
    const plain = aead.open(sealed, this.#header);
    this.#header = null;
    return plain;
  }

  /** TCP alone says the end, as the protocol has no word for it; a cut in the middle of a record is one. */
  openEnd(): void {
    if (this.#arrived.length > 0 || this.#header !== null)
      throw new ProtocolError("VLESS Encryption: the stream ended within a record");
  }

  close(): void {
    this[Symbol.dispose]();
  }

  [Symbol.dispose](): void {
    this.#writing.aead[Symbol.dispose]();
    this.#reading?.aead[Symbol.dispose]();
  }
}

function checkedHeader(header: Buffer): Buffer {
  const length = header.readUInt16BE(3);
  if (header.readUIntBE(0, 3) !== 0x170303 || length <= TAG_BYTES || length > MOST_SEALED_BYTES)
    throw new ProtocolError("VLESS Encryption: no record header");
  return header;
}
