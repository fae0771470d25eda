/**
 * Slots for requests and their answers, in the memory that accepting workers share with the main thread. A request slot
 * is the worker's until it asks, the main thread's until it answers.
 */
import type { WireStart } from "#core/wire-state.ts";
import type { UnderlayRecipe } from "#core/wire-recipe.ts";
import { SOCKADDR_BYTES } from "#platform/linux/sockaddr.ts";
import { int32At } from "#lib/at.ts";

/** Requests that wait for an answer; one more waits until a slot is free. */
export const REQUEST_SLOTS = 1024;
const SLOT_BYTES = 4096;

// Request:  LOCAL(28) PAD(4) LENGTH(4) BYTES(n): the handshake, beginning with the request itself;
//           of redirected clients the socket address that they were going to;
//           of `first-bytes` as much as has come
// Answer:   ADDRESS(28) LENGTH(4) MARK(4) TIMEOUT(4) IDLE(4) INTERVAL(4) DEVICE(16) LENGTH(4) REPLY(n)
const LOCAL = 0;
const REQUEST_LENGTH = 32;
const REQUEST = 36;
/** A longer request is left to the event loop; of `first-bytes` no more than that is shown. */
export const REQUEST_BYTES = SLOT_BYTES - REQUEST;

const ADDRESS_LENGTH = 28;
const MARK = 32;
const TIMEOUT = 36;
const IDLE = 40;
const INTERVAL = 44;
const DEVICE = 48;
const DEVICE_BYTES = 16;
const REPLY_LENGTH = 64;
const REPLY = 68;

export const REQUEST_MEMORY_BYTES = REQUEST_SLOTS * (4 + SLOT_BYTES);

/** In place of an errno of a dial: the connection was not made in time. */
export const DIAL_TIMED_OUT = 0;
/** The same: TLS or an upgrade did not come about. What is wrong with it, the main thread sees when it dials. */
export const UNDERLAY_FAILED = 1;

/** What a thread dials. */
export interface Dial {
  /** Of a dial that was decided here it is lent: it is dialled at once. */
  readonly address: Uint8Array;
  readonly mark: number;
  readonly timeoutMs: number;
  /** 0: no probes. */
  readonly idleSeconds: number;
  readonly intervalSeconds: number;
  readonly device: Uint8Array;
  readonly replyBytes: Uint8Array;
  /** There are other addresses, which the event loop tries where this one does not answer. */
  readonly isFirstOfMany?: boolean;
  /** Of a dial that was decided here: what is opened first, once it is connected. */
  readonly under?: UnderlayRecipe | undefined;
  /** What lies over the socket, once it is connected. Absent: nothing, or what comes with the command. */
  readonly wire?: () => WireStart;
}

export class RequestMemory {
  /** Bytes of the handshake in front of the tunnel's, by request slot. With the answer it may have become less. */
  readonly sizes: Int32Array;
  readonly #bytes: Buffer;
  readonly #words: Int32Array;

  /** `at` is where its `REQUEST_MEMORY_BYTES` begin. */
  constructor(memory: SharedArrayBuffer, at: number) {
    this.sizes = new Int32Array(memory, at, REQUEST_SLOTS);
    const slotsAt = at + REQUEST_SLOTS * 4;
    this.#bytes = Buffer.from(memory, slotsAt, REQUEST_SLOTS * SLOT_BYTES) as Buffer;
    this.#words = new Int32Array(memory, slotsAt, (REQUEST_SLOTS * SLOT_BYTES) / 4);
  }

  writeRequest(index: number, local: Uint8Array, request: Uint8Array): void {
    this.#write(index, LOCAL, local);
    this.#setNumber(index, REQUEST_LENGTH, request.length);
    this.#write(index, REQUEST, request);
  }

  /** The listening side's own socket address. */
  local(index: number): Uint8Array {
    return this.#part(index, LOCAL, SOCKADDR_BYTES);
  }

  /** A copy. */
  request(index: number): Buffer {
    const size = this.#number(index, REQUEST_LENGTH);
    const start = index * SLOT_BYTES + REQUEST;
    const copied = Buffer.allocUnsafe(size);
    this.#bytes.copy(copied, 0, start, start + size);
    return copied;
  }

  /** Of a redirected client: the socket address that it was going to. */
  original(index: number): Uint8Array {
    return this.#part(index, REQUEST, this.#number(index, REQUEST_LENGTH));
  }

  writeDial(index: number, dial: Dial): void {
    this.#write(index, 0, dial.address);
    this.#setNumber(index, ADDRESS_LENGTH, dial.address.length);
    this.#setNumber(index, MARK, dial.mark | 0);
    this.#setNumber(index, TIMEOUT, dial.timeoutMs);
    this.#setNumber(index, IDLE, dial.idleSeconds);
    this.#setNumber(index, INTERVAL, dial.intervalSeconds);
    const device = index * SLOT_BYTES + DEVICE;
    this.#bytes.fill(0, device, device + DEVICE_BYTES);
    if (dial.device.length > 0) this.#part(index, DEVICE, DEVICE_BYTES).set(dial.device); // throws where it is too long
    this.#setNumber(index, REPLY_LENGTH, dial.replyBytes.length);
    this.#write(index, REPLY, dial.replyBytes);
  }

  /** A copy. */
  dial(index: number): Dial {
    const device = this.#part(index, DEVICE, DEVICE_BYTES);
    return {
      address: new Uint8Array(this.#part(index, 0, this.#number(index, ADDRESS_LENGTH))),
      mark: this.#number(index, MARK),
      timeoutMs: this.#number(index, TIMEOUT),
      idleSeconds: this.#number(index, IDLE),
      intervalSeconds: this.#number(index, INTERVAL),
      device: new Uint8Array(device.subarray(0, device.indexOf(0))),
      replyBytes: new Uint8Array(this.#part(index, REPLY, this.#number(index, REPLY_LENGTH))),
    };
  }

  #number(index: number, at: number): number {
    return int32At(this.#words, (index * SLOT_BYTES + at) >>> 2);
  }

  #setNumber(index: number, at: number, value: number): void {
    this.#words[(index * SLOT_BYTES + at) >>> 2] = value;
  }

  #part(index: number, at: number, length: number): Buffer {
    const start = index * SLOT_BYTES + at;
    return this.#bytes.subarray(start, start + length);
  }

  /** Where the part is as long as its bytes. */
  #write(index: number, at: number, bytes: Uint8Array): void {
    if (bytes.length > 0) this.#bytes.set(bytes, index * SLOT_BYTES + at);
  }
}
