/** Many datagrams with one system call: recvmmsg(2) into memory that is made once. 64-bit layouts. */
import type * as Ffi from "node:ffi";
import { NO_CONTROL, readControl, type Control } from "./control-message.ts";
import {
  addressOf,
  CONTROL_LENGTH_WORD,
  CONTROL_WORD,
  FLAGS_WORD,
  HEADER_WORDS,
  LENGTH_WORD,
  lowWord,
  NAME_BYTES,
  NAME_LENGTH_WORD,
  NAME_WORD,
  setLong,
  VECTOR_COUNT_WORD,
  VECTOR_LENGTH_WORD,
  VECTOR_WORDS,
  VECTORS_WORD,
} from "./message-layout.ts";
import { WORDS } from "./machine-words.ts";
import { SOCKADDR_BYTES } from "./sockaddr.ts";
import { MSG_DONTWAIT } from "./numbers.ts";
import { uint32At, itemAt } from "#lib/at.ts";

/** Messages of one call. */
const BATCH = 64;
const BATCH_WORD = BigInt(BATCH);
/** No UDP payload is longer, and no run of them that the kernel has put together. */
const SLOT_BYTES = 65_536;
/** Room for both families' original destination, the traffic class and the size of segments. */
const CONTROL_BYTES = 128;
const MSG_CTRUNC = 8;
const DONTWAIT = BigInt(MSG_DONTWAIT);

const SIGNATURES = {
  recvmmsg: { arguments: WORDS[5], return: "i32" },
} as const;

/** Everything is lent until it returns: the next read overwrites it. `name` is a sockaddr. */
export type OnReceived = (payload: Buffer, name: Uint8Array, control: Control) => void;

/** Of one thread: its calls come one after the other. Its 4 MiB are touched only as far as datagrams are long. */
export class ReceiveBatch {
  readonly #library;
  readonly #payloads = Buffer.from(new ArrayBuffer(BATCH * SLOT_BYTES));
  readonly #headers = new Uint32Array(new ArrayBuffer(BATCH * HEADER_WORDS * 4));
  readonly #pointer: bigint;
  readonly #names: readonly Uint8Array[];
  readonly #controls: readonly Uint8Array[];
  /** Lent to the kernel by address alone: nothing else would keep it. */
  readonly #vectors = new Uint32Array(new ArrayBuffer(BATCH * VECTOR_WORDS * 4));
  // Most datagrams carry the same messages as the one before.
  readonly #lastControl = new Uint8Array(CONTROL_BYTES);
  #lastControlBytes = 0;
  #control: Control = NO_CONTROL;
  /** What a receiver threw first. */
  #fault: { readonly error: unknown } | null = null;

  constructor(ffi: typeof Ffi) {
    this.#library = ffi.dlopen(null, SIGNATURES);
    this.#pointer = ffi.getRawPointer(this.#headers);
    const names = new Uint8Array(new ArrayBuffer(BATCH * NAME_BYTES));
    const controls = new Uint8Array(new ArrayBuffer(BATCH * CONTROL_BYTES));
    this.#names = slotsOf(names, NAME_BYTES, SOCKADDR_BYTES);
    this.#controls = slotsOf(controls, CONTROL_BYTES, CONTROL_BYTES);
    const payloadsAt = addressOf(ffi, this.#payloads);
    const namesAt = addressOf(ffi, names);
    const controlsAt = addressOf(ffi, controls);
    const vectorsAt = addressOf(ffi, this.#vectors);
    for (let at = 0; at < BATCH; at++) {
      setLong(this.#vectors, at * VECTOR_WORDS, payloadsAt + at * SLOT_BYTES);
      setLong(this.#vectors, at * VECTOR_WORDS + VECTOR_LENGTH_WORD, SLOT_BYTES);
      const header = at * HEADER_WORDS;
      setLong(this.#headers, header + NAME_WORD, namesAt + at * NAME_BYTES);
      setLong(this.#headers, header + VECTORS_WORD, vectorsAt + at * VECTOR_WORDS * 4);
      setLong(this.#headers, header + VECTOR_COUNT_WORD, 1);
      setLong(this.#headers, header + CONTROL_WORD, controlsAt + at * CONTROL_BYTES);
      this.#makeReady(header);
    }
  }

  /** The kernel has written how much of each it used. */
  #makeReady(header: number): void {
    this.#headers[header + NAME_LENGTH_WORD] = SOCKADDR_BYTES;
    setLong(this.#headers, header + CONTROL_LENGTH_WORD, CONTROL_BYTES);
  }

  /**
   * Gives what has arrived, one batch of messages at most; one may hold many datagrams (UDP_GRO). Never waits; a pending
   * error of the socket is taken off it. True: the batch was full, there may be more. Throws what `on` threw, when all the
   * others have been given: they are of other peers.
   */
  read(fd: number, on: OnReceived): boolean {
    const { recvmmsg } = this.#library.functions;
    const count = recvmmsg(BigInt(fd), this.#pointer, BATCH_WORD, DONTWAIT, 0n);
    for (let at = 0; at < count; at++) this.#give(at, on);
    if (this.#fault === null) return count === BATCH;
    const { error } = this.#fault;
    this.#fault = null;
    throw error;
  }

  #give(at: number, on: OnReceived): void {
    const headers = this.#headers;
    const header = at * HEADER_WORDS;
    const length = uint32At(headers, header + LENGTH_WORD);
    const isCut = (uint32At(headers, header + FLAGS_WORD) & MSG_CTRUNC) !== 0;
    const control = this.#controlOf(at, lowWord(headers, header + CONTROL_LENGTH_WORD));
    this.#makeReady(header);
    if (isCut) return; // without the whole control data neither the destination nor the size of the segments is known
    const name = itemAt(this.#names, at);
    const segment = control.segmentBytes === 0 ? length : control.segmentBytes;
    const start = at * SLOT_BYTES;
    let from = start;
    do {
      const to = Math.min(from + segment, start + length);
      try {
        on(this.#payloads.subarray(from, to), name, control);
      } catch (error) {
        this.#fault ??= { error };
      }
      from = to;
    } while (from < start + length);
  }

  #controlOf(at: number, bytes: number): Control {
    if (bytes === 0) return NO_CONTROL;
    const control = itemAt(this.#controls, at);
    const last = this.#lastControl;
    let same = bytes === this.#lastControlBytes ? 0 : -1;
    while (same >= 0 && same < bytes) same = control[same] === last[same] ? same + 1 : -1;
    if (same === bytes) return this.#control;
    last.set(control);
    this.#lastControlBytes = bytes;
    return (this.#control = readControl(control.subarray(0, bytes)));
  }
}

function slotsOf(memory: Uint8Array, stride: number, bytes: number): readonly Uint8Array[] {
  return Array.from({ length: BATCH }, (_, at) => memory.subarray(at * stride, at * stride + bytes));
}
