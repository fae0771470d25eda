/** What sendmmsg(2) is shown: messages, each of pieces of one memory, some to be cut into datagrams by the kernel. */
import type * as Ffi from "node:ffi";
import { IP_TOS, IPV6_TCLASS, SOL_IP, SOL_IPV6 } from "./control-message.ts";
import {
  addressOf,
  CONTROL_LENGTH_WORD,
  CONTROL_WORD,
  HEADER_BYTES,
  HEADER_WORDS,
  lowWord,
  NAME_BYTES,
  NAME_LENGTH_WORD,
  NAME_WORD,
  setLong,
  SOL_UDP,
  UDP_SEGMENT,
  VECTOR_COUNT_WORD,
  VECTOR_LENGTH_WORD,
  VECTOR_WORDS,
  VECTORS_WORD,
} from "./message-layout.ts";
import { WORDS } from "./machine-words.ts";
import { MSG_DONTWAIT, MSG_NOSIGNAL } from "./numbers.ts";
import { int32At } from "#lib/at.ts";

// cmsghdr: LEN(8) LEVEL(4) TYPE(4), then the size of a segment (2) or a mark (4), native, and padding to 8. The mark is there
// for either family: each passes over the other's.
const ENTRY_BYTES = 24;
const MARK_ENTRIES = 2;
const CONTROL_BYTES = ENTRY_BYTES * (1 + MARK_ENTRIES);
const SIZE_LENGTH = 18;
const MARK_LENGTH = 20;
const VALUE_AT = 16;
/** ECT(0), RFC 3168 §5. */
const ECT0 = 2;

const SEND_FLAGS = BigInt(MSG_DONTWAIT | MSG_NOSIGNAL);

const SIGNATURES = {
  sendmmsg: { arguments: WORDS[4], return: "i32" },
  __errno_location: { arguments: [], return: "pointer" },
} as const;

/** Lends `memory` and `names` to the kernel, which reads them during `send` only. 64-bit layouts. */
export class SendMessages {
  count = 0;
  readonly #library;
  readonly #errno: Int32Array;
  readonly #memoryAt: number;
  readonly #namesAt: number;
  readonly #vectorsAt: number;
  readonly #controlsAt: number;
  readonly #pointer: bigint;
  readonly #headers: Uint32Array;
  readonly #vectors: Uint32Array;
  /** Of each message: the size of its segments. */
  readonly #sizes: Uint16Array;
  #vectorsUsed = 0;
  /** Where the last vector ends. */
  #end = 0;
  /** Held for the kernel: addresses alone keep nothing alive. */
  readonly lent: readonly Uint8Array[];

  /** `names` has a slot of `NAME_BYTES` for each; there may be `most` messages of `most` pieces together. */
  constructor(ffi: typeof Ffi, memory: Uint8Array, names: Uint8Array, most: number) {
    this.#library = ffi.dlopen(null, SIGNATURES);
    this.#errno = new Int32Array(ffi.toArrayBuffer(this.#library.functions.__errno_location(), 4, false));
    this.#headers = new Uint32Array(new ArrayBuffer(most * HEADER_BYTES));
    this.#vectors = new Uint32Array(new ArrayBuffer(most * VECTOR_WORDS * 4));
    const controls = new Uint8Array(new ArrayBuffer(most * CONTROL_BYTES));
    this.#sizes = new Uint16Array(controls.buffer);
    this.lent = [memory, names, controls];
    [this.#memoryAt, this.#namesAt] = [addressOf(ffi, memory), addressOf(ffi, names)];
    this.#vectorsAt = addressOf(ffi, this.#vectors);
    this.#pointer = ffi.getRawPointer(this.#headers);
    this.#controlsAt = addressOf(ffi, controls);
    const words = new Uint32Array(controls.buffer);
    const entry = (at: number, length: number, level: number, type: number, value: number): void => {
      setLong(words, at / 4, length);
      words.set([level, type, value], at / 4 + 2);
    };
    for (let at = 0; at < controls.length; at += CONTROL_BYTES) {
      entry(at, SIZE_LENGTH, SOL_UDP, UDP_SEGMENT, 0);
      entry(at + ENTRY_BYTES, MARK_LENGTH, SOL_IP, IP_TOS, ECT0);
      entry(at + 2 * ENTRY_BYTES, MARK_LENGTH, SOL_IPV6, IPV6_TCLASS, ECT0);
    }
  }

  clear(): void {
    this.count = 0;
    this.#vectorsUsed = 0;
  }

  /** Begins a message to the name in a slot; its first piece comes with it. */
  begin(slot: number, nameBytes: number, start: number, bytes: number): void {
    const header = this.count++ * HEADER_WORDS;
    const headers = this.#headers;
    setLong(headers, header + NAME_WORD, this.#namesAt + slot * NAME_BYTES);
    headers[header + NAME_LENGTH_WORD] = nameBytes;
    setLong(headers, header + VECTORS_WORD, this.#vectorsAt + this.#vectorsUsed * VECTOR_WORDS * 4);
    setLong(headers, header + VECTOR_COUNT_WORD, 0);
    setLong(headers, header + CONTROL_LENGTH_WORD, 0);
    this.#vector(header, start, bytes);
  }

  /** One more piece of the message that was begun last. */
  append(start: number, bytes: number): void {
    if (start !== this.#end) return this.#vector((this.count - 1) * HEADER_WORDS, start, bytes);
    const vector = (this.#vectorsUsed - 1) * VECTOR_WORDS;
    setLong(
      this.#vectors,
      vector + VECTOR_LENGTH_WORD,
      lowWord(this.#vectors, vector + VECTOR_LENGTH_WORD) + bytes,
    );
    this.#end += bytes;
  }

  /** The message that was begun last shall have ECT(0); called before `cut`. */
  mark(): void {
    this.#setControl(ENTRY_BYTES, CONTROL_BYTES - ENTRY_BYTES);
  }

  /** The kernel shall cut the message that was begun last into pieces of so many bytes. */
  cut(bytes: number): void {
    const at = this.count - 1;
    this.#setControl(0, ENTRY_BYTES + lowWord(this.#headers, at * HEADER_WORDS + CONTROL_LENGTH_WORD));
    this.#sizes[(at * CONTROL_BYTES + VALUE_AT) / 2] = bytes;
  }

  /** Of the message that was begun last: from where in its entries the kernel reads, and how far. */
  #setControl(from: number, bytes: number): void {
    const at = this.count - 1;
    const header = at * HEADER_WORDS;
    setLong(this.#headers, header + CONTROL_WORD, this.#controlsAt + at * CONTROL_BYTES + from);
    setLong(this.#headers, header + CONTROL_LENGTH_WORD, bytes);
  }

  isCut(at: number): boolean {
    const bytes = lowWord(this.#headers, at * HEADER_WORDS + CONTROL_LENGTH_WORD);
    return bytes === ENTRY_BYTES || bytes === CONTROL_BYTES;
  }

  /** Sends messages from that one on and answers with how many went, or with the errno of its first as a negative. */
  send(fd: number, from: number): number {
    const pointer = from === 0 ? this.#pointer : this.#pointer + BigInt(from * HEADER_BYTES);
    const { sendmmsg } = this.#library.functions;
    const sent = sendmmsg(BigInt(fd), pointer, BigInt(this.count - from), SEND_FLAGS);
    return sent > 0 ? sent : -int32At(this.#errno, 0);
  }

  #vector(header: number, start: number, bytes: number): void {
    const vector = this.#vectorsUsed++ * VECTOR_WORDS;
    setLong(this.#vectors, vector, this.#memoryAt + start);
    setLong(this.#vectors, vector + VECTOR_LENGTH_WORD, bytes);
    const count = lowWord(this.#headers, header + VECTOR_COUNT_WORD) + 1;
    setLong(this.#headers, header + VECTOR_COUNT_WORD, count);
    this.#end = start + bytes;
  }
}
