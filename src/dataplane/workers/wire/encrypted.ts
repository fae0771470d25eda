/**
 * Records that look like application data of TLS 1.3: 17 03 03 LENGTH(2) SEALED(LENGTH), the header being the additional
 * data. The nonce counts the messages of its direction, big endian, and is one before the first.
 */
import { byteAt } from "#lib/at.ts";
import { type CipherMemory, TAG_BYTES } from "./cipher-memory.ts";
import type { SealedBelow } from "./sealed-below.ts";
import { BROKEN, SealedReader } from "./sealed-reader.ts";
import { SealedWire } from "./sealed-wire.ts";
import { SealedWriter } from "./sealed-writer.ts";
import type { WireIo } from "./wire.ts";

const HEADER_BYTES = 5;
const HEADER = 0x170303;
const MOST_PLAIN_BYTES = 8192;
/** What older peers write at most. */
const MOST_SEALED_BYTES = 17_000;
const NONCE_BYTES = 12;
/** The library's context of a direction, and its messages so far. */
interface Direction {
  readonly context: bigint;
  readonly count: number;
}

class Cipher {
  readonly context: bigint;
  readonly #memory: CipherMemory;
  readonly #nonce = Buffer.alloc(NONCE_BYTES);
  #count: number;

  constructor(memory: CipherMemory, { context, count }: Direction) {
    this.#memory = memory;
    this.context = context;
    this.#count = count;
  }

  /** The next record, whose header is at that address. */
  begin(headerAt: bigint): void {
    this.#nonce.writeUIntBE(++this.#count, NONCE_BYTES - 6, 6);
    this.#memory.evp.beginAt(this.context, this.#nonce, headerAt, HEADER_BYTES);
  }
}

class EncryptedReader extends SealedReader {
  readonly #cipher: Cipher;
  protected readonly isCut = false;

  /** `rest` was read from the socket already, and not opened. */
  constructor(memory: CipherMemory, below: SealedBelow, direction: Direction, rest: Uint8Array | null) {
    super(memory, below, rest);
    this.#cipher = new Cipher(memory, direction);
  }

  protected due(end: number): number {
    return end - this.at < HEADER_BYTES ? 0 : HEADER_BYTES + lengthIn(this.memory.wire, this.at);
  }

  protected open(_io: WireIo, end: number, room: number): number {
    let bytes = 0;
    for (let size = this.#arrived(end); size > 0; size = this.#arrived(end)) {
      this.isFull = this.isSated || (bytes > 0 && bytes + size - TAG_BYTES > room);
      if (this.isFull || !this.#openRecord(bytes, size)) break;
      bytes += size - TAG_BYTES;
    }
    return bytes;
  }

  /** The length of the next record without its header; 0: it is not whole, or nothing more is to be read. */
  #arrived(end: number): number {
    const { wire } = this.memory;
    const { at } = this;
    if (this.last !== null || end - at < HEADER_BYTES) return 0;
    const start = (byteAt(wire, at) << 16) | (byteAt(wire, at + 1) << 8) | byteAt(wire, at + 2);
    const size = lengthIn(wire, at);
    if (start !== HEADER || size <= TAG_BYTES || size > MOST_SEALED_BYTES) this.last = BROKEN;
    return this.last === null && end - at >= HEADER_BYTES + size ? size : 0;
  }

  /** So far behind the start of the thread's buffer. */
  #openRecord(to: number, size: number): boolean {
    const { evp, plainAddresses, wireAddresses } = this.memory;
    this.#cipher.begin(wireAddresses.of(this.at));
    const from = wireAddresses.of(this.at + HEADER_BYTES);
    const out = plainAddresses.of(to);
    if (!evp.openAt(this.#cipher.context, out, from, size - TAG_BYTES)) this.last = BROKEN;
    else this.at += HEADER_BYTES + size;
    this.opened(HEADER_BYTES + size, size - TAG_BYTES);
    return this.last === null;
  }
}

class EncryptedWriter extends SealedWriter {
  readonly #cipher: Cipher;

  constructor(memory: CipherMemory, below: SealedBelow, direction: Direction) {
    super(memory, below);
    this.#cipher = new Cipher(memory, direction);
  }

  protected seal(size: number): number {
    const { evp, plainAddresses, wire, wireAddresses } = this.memory;
    let end = 0;
    for (let from = 0; from < size; from += MOST_PLAIN_BYTES) {
      const bytes = Math.min(MOST_PLAIN_BYTES, size - from);
      writeHeader(wire, end, bytes + TAG_BYTES);
      this.#cipher.begin(wireAddresses.of(end));
      const to = wireAddresses.of(end + HEADER_BYTES);
      evp.sealAt(this.#cipher.context, to, plainAddresses.of(from), bytes);
      end += HEADER_BYTES + bytes + TAG_BYTES;
    }
    return end;
  }
}

/** Of the record there, as its header says. */
function lengthIn(wire: Uint8Array, at: number): number {
  return (byteAt(wire, at + 3) << 8) | byteAt(wire, at + 4);
}

function writeHeader(out: Uint8Array, at: number, size: number): void {
  out[at] = HEADER >>> 16;
  out[at + 1] = out[at + 2] = HEADER & 0xff;
  out[at + 3] = size >>> 8;
  out[at + 4] = size;
}

export interface EncryptedStart {
  /** 0 and 1: the contexts of opening and sealing. 2 and 3: the messages of each so far. */
  word(at: number): number;
  /** Read from the socket already, and not opened. */
  readonly unread: Uint8Array | null;
}

export function openEncryptedWire(
  memory: CipherMemory,
  below: SealedBelow,
  { word, unread }: EncryptedStart,
): SealedWire {
  const [opening, sealing] = [BigInt(word(0)), BigInt(word(1))];
  return new SealedWire({
    memory,
    below,
    contexts: { sealing, opening },
    reader: new EncryptedReader(memory, below, { context: opening, count: word(2) }, unread),
    writer: new EncryptedWriter(memory, below, { context: sealing, count: word(3) }),
  });
}
