/**
 * The memory that accepting workers share with the main thread beside the relay memory: listeners, and slots for
 * requests and their answers. A request slot is the worker's until it asks, the main thread's until it answers.
 */
import type { Switched } from "#core/accepted.ts";
import type { WireStart } from "#core/handover.ts";
import type { UnderlayRecipe } from "#core/wire-recipe.ts";
import { portOf, SOCKADDR_BYTES } from "#platform/linux/sockaddr.ts";
import { WordLayout } from "./word-layout.ts";
import { byteAt, int32At, itemAt } from "#lib/at.ts";
import { MOST_NAME_BYTES } from "#lib/name-table.ts";

/** At one time; one more is served by the event loop. */
export const LISTENERS = 256;
/** Requests that wait for an answer; one more waits until a slot is free. */
export const REQUEST_SLOTS = 1024;
const REQUEST_SLOT_BYTES = 4096;

/** In place of an errno of a dial: the connection was not made in time. */
export const DIAL_TIMED_OUT = 0;
/** The same: TLS or an upgrade did not come about. What is wrong with it, the main thread sees when it dials. */
export const UNDERLAY_FAILED = 1;

/** RFC 1928 §3: VER METHOD, no authentication required. A worker answers a greeting by it before it has the request. */
export const NO_AUTHENTICATION = Uint8Array.of(5, 0);

/** States of a listener. */
export const CLOSED = 0;
export const OPEN = 1;
/** What the kernel has queued is still taken. */
export const DRAINS = 2;

// Request:  LOCAL(28) PAD(4) LENGTH(4) BYTES(n): the handshake, beginning with the request itself;
//           of redirected clients the socket address that they were going to;
//           of `first-bytes` as much as has come
// Answer:   ADDRESS(28) LENGTH(4) MARK(4) TIMEOUT(4) IDLE(4) INTERVAL(4) DEVICE(16) LENGTH(4) REPLY(n)
const LOCAL = 0;
const REQUEST_LENGTH = 32;
const REQUEST = 36;
/** A longer request is left to the event loop; of `first-bytes` no more than that is shown. */
export const REQUEST_BYTES = REQUEST_SLOT_BYTES - REQUEST;

const ADDRESS_LENGTH = 28;
const MARK = 32;
const TIMEOUT = 36;
const IDLE = 40;
const INTERVAL = 44;
const DEVICE = 48;
const DEVICE_BYTES = 16;
const REPLY_LENGTH = 64;
const REPLY = 68;

const LISTENER_WORDS = 3;
const MEMORY_BYTES = (LISTENERS * LISTENER_WORDS + REQUEST_SLOTS) * 4 + REQUEST_SLOTS * REQUEST_SLOT_BYTES;
const PATHS_AT = MEMORY_BYTES + (LISTENERS + 1) * 8;
/** Of a path to be asked for; the connections of a listener with a longer one are the event loop's. */
export const MOST_PATH_BYTES = 255;
// LENGTH(1) PATH(n)
const PATH_BYTES = 1 + MOST_PATH_BYTES;
const SLOTS_AT = PATHS_AT + LISTENERS * PATH_BYTES;
// Of a decision: VERSION TYPE TARGET LIST POSITION END ORIGIN FAKED, one word each
const DECISION_WORDS = 8;
const SOCKADDRS = 5;
// LENGTH(1) NAME(n)
const NAME_BYTES = 1 + MOST_NAME_BYTES;
const SLOT_BYTES = 8 + (2 + DECISION_WORDS) * 4 + SOCKADDRS * SOCKADDR_BYTES + NAME_BYTES;

export function newAcceptMemory(slots: number): SharedArrayBuffer {
  return new SharedArrayBuffer(SLOTS_AT + slots * SLOT_BYTES);
}

/** Of a decision, as `AcceptMemory` keeps it; `origin` is an index of `ADDRESS_ORIGINS`; `faked` 1: its client has asked for a fake address. */
export type DecisionRow = readonly [
  version: number,
  type: number,
  target: number,
  list: number,
  position: number,
  end: number,
  origin: number,
  faked: number,
];

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

export class AcceptMemory {
  /** Descriptors of listeners. */
  readonly listeners: Int32Array;
  readonly states: Int32Array;
  /** Index in `HANDSHAKES` of what is read of a listener's clients. */
  readonly handshakes: Int32Array;
  /** One: the address of the thread's choice of a protocol; see platform/linux/ssl-alpn.ts. */
  readonly onAlpn: BigUint64Array;
  /** For listeners with TLS: the address of the context for new connections; 0: none. */
  readonly contexts: BigUint64Array;
  /** Of each slot: its listener, whether its greeting was answered, its request slot; see `tag`. */
  readonly tags: Int32Array;
  /** Bytes of the handshake in front of the tunnel's, by request slot. With the answer it may have become less. */
  readonly sizes: Int32Array;
  /**
   * Of each slot: who accounts for a connection that the worker has decided; see `decision-data.ts`. The worker writes
   * `CONNECTED`; the side that changes that, the worker at the connection's end or the main thread to `JOINED`, has it.
   */
  readonly decided: Int32Array;
  /** Of those: since when they are connected, in ms of Unix time. */
  readonly startedAtMs: Float64Array;
  /** Of each slot: the socket address of its client. */
  readonly sources: Uint8Array;
  readonly #decisions: Int32Array;
  readonly #destinations: Uint8Array;
  readonly #locals: Uint8Array;
  readonly #wanted: Uint8Array;
  readonly #faked: Uint8Array;
  readonly #names: Buffer;
  readonly #paths: Buffer;
  readonly #bytes: Buffer;
  readonly #words: Int32Array;

  constructor(memory: SharedArrayBuffer) {
    const words = new WordLayout(memory);
    this.listeners = words.take(LISTENERS);
    this.states = words.take(LISTENERS);
    this.handshakes = words.take(LISTENERS);
    this.sizes = words.take(REQUEST_SLOTS);
    this.#bytes = Buffer.from(memory, words.bytes, REQUEST_SLOTS * REQUEST_SLOT_BYTES) as Buffer;
    this.#words = new Int32Array(memory, words.bytes, (REQUEST_SLOTS * REQUEST_SLOT_BYTES) / 4);
    this.contexts = new BigUint64Array(memory, MEMORY_BYTES, LISTENERS);
    this.onAlpn = new BigUint64Array(memory, MEMORY_BYTES + LISTENERS * 8, 1);
    this.#paths = Buffer.from(memory, PATHS_AT, LISTENERS * PATH_BYTES) as Buffer;
    const slots = (memory.byteLength - SLOTS_AT) / SLOT_BYTES;
    this.startedAtMs = new Float64Array(memory, SLOTS_AT, slots);
    const wordsAt = SLOTS_AT + slots * 8;
    this.tags = new Int32Array(memory, wordsAt, slots);
    this.decided = new Int32Array(memory, wordsAt + slots * 4, slots);
    this.#decisions = new Int32Array(memory, wordsAt + slots * 8, slots * DECISION_WORDS);
    const bytesAt = wordsAt + slots * (2 + DECISION_WORDS) * 4;
    const sockaddrs = (nth: number) =>
      new Uint8Array(memory, bytesAt + slots * nth * SOCKADDR_BYTES, slots * SOCKADDR_BYTES);
    this.sources = sockaddrs(0);
    this.#destinations = sockaddrs(1);
    this.#locals = sockaddrs(2);
    this.#wanted = sockaddrs(3);
    this.#faked = sockaddrs(4);
    const namesAt = bytesAt + slots * SOCKADDRS * SOCKADDR_BYTES;
    this.#names = Buffer.from(memory, namesAt, slots * NAME_BYTES) as Buffer;
  }

  /** Where clients of a listener ask for a switch from HTTP/1.1 first; empty: they do not. */
  upgradePath(listener: number): string {
    const at = listener * PATH_BYTES;
    return this.#paths.toString("utf8", at + 1, at + 1 + byteAt(this.#paths, at));
  }

  setUpgradePath(listener: number, path: string): void {
    const at = listener * PATH_BYTES;
    this.#paths[at] = this.#paths.write(path, at + 1, MOST_PATH_BYTES);
  }

  /** What a worker has decided on the connection of a slot: VERSION TYPE TARGET LIST POSITION END ORIGIN FAKED, as `DecisionRow` has it. */
  decision(slot: number): Int32Array {
    return this.#decisions.subarray(slot * DECISION_WORDS, (slot + 1) * DECISION_WORDS);
  }

  /** The version by which the worker has decided on the connection of a slot. */
  versionOf(slot: number): number {
    return int32At(this.#decisions, slot * DECISION_WORDS);
  }

  /** What the worker has decided, and both ends of it: what it dials, and the listening side's own socket address. */
  writeDecision(slot: number, row: DecisionRow, to: Uint8Array, local: Uint8Array): void {
    const at = slot * DECISION_WORDS;
    for (let word = 0; word < DECISION_WORDS; word++) this.#decisions[at + word] = itemAt(row, word);
    this.#destinations.set(to, slot * SOCKADDR_BYTES);
    this.#wanted.set(to, slot * SOCKADDR_BYTES);
    this.#locals.set(local, slot * SOCKADDR_BYTES);
  }

  /** Behind `writeDecision`, where something else than what its client wants is dialled. */
  setWanted(slot: number, to: Uint8Array): void {
    this.#wanted.set(to, slot * SOCKADDR_BYTES);
  }

  /** Behind `writeDecision`, where it says so: the socket address that its client has asked for. */
  setFaked(slot: number, to: Uint8Array): void {
    this.#faked.set(to, slot * SOCKADDR_BYTES);
  }

  /** That. */
  faked(slot: number): Uint8Array {
    return this.#faked.subarray(slot * SOCKADDR_BYTES, (slot + 1) * SOCKADDR_BYTES);
  }

  /** The socket address that its client wants, or the port alone where it has asked for a name that none was needed of. */
  wanted(slot: number): Uint8Array {
    return this.#wanted.subarray(slot * SOCKADDR_BYTES, (slot + 1) * SOCKADDR_BYTES);
  }

  /** The socket address that it has dialled. */
  destination(slot: number): Uint8Array {
    return this.#destinations.subarray(slot * SOCKADDR_BYTES, (slot + 1) * SOCKADDR_BYTES);
  }

  /** The name that its client has asked for, or means by a fake address; ASCII. */
  nameOf(slot: number): string {
    const at = slot * NAME_BYTES;
    return this.#names.toString("latin1", at + 1, at + 1 + byteAt(this.#names, at));
  }

  /** Throws `RangeError` for one that no table of names has. */
  setName(slot: number, name: string): void {
    if (name.length > MOST_NAME_BYTES) throw new RangeError(`a name of ${name.length} bytes`);
    const at = slot * NAME_BYTES;
    this.#names[at] = name.length;
    this.#names.write(name, at + 1, "latin1");
  }

  /** The listening side's own socket address of it. */
  localOf(slot: number): Uint8Array {
    return this.#locals.subarray(slot * SOCKADDR_BYTES, (slot + 1) * SOCKADDR_BYTES);
  }

  #number(index: number, at: number): number {
    return int32At(this.#words, (index * REQUEST_SLOT_BYTES + at) >>> 2);
  }

  #setNumber(index: number, at: number, value: number): void {
    this.#words[(index * REQUEST_SLOT_BYTES + at) >>> 2] = value;
  }

  #part(index: number, at: number, length: number): Buffer {
    const start = index * REQUEST_SLOT_BYTES + at;
    return this.#bytes.subarray(start, start + length);
  }

  /** Where the part is as long as its bytes. */
  #write(index: number, at: number, bytes: Uint8Array): void {
    if (bytes.length > 0) this.#bytes.set(bytes, index * REQUEST_SLOT_BYTES + at);
  }

  source(slot: number): Uint8Array {
    return this.sources.subarray(slot * SOCKADDR_BYTES, (slot + 1) * SOCKADDR_BYTES);
  }

  sourcePort(slot: number): number {
    return portOf(this.sources, slot * SOCKADDR_BYTES);
  }

  writeRequest(index: number, local: Uint8Array, request: Uint8Array): void {
    this.#write(index, LOCAL, local);
    this.#setNumber(index, REQUEST_LENGTH, request.length);
    this.#write(index, REQUEST, request);
  }

  local(index: number): Uint8Array {
    return this.#part(index, LOCAL, SOCKADDR_BYTES);
  }

  /** A copy. */
  request(index: number): Buffer {
    const size = this.#number(index, REQUEST_LENGTH);
    const start = index * REQUEST_SLOT_BYTES + REQUEST;
    const copied = Buffer.allocUnsafe(size);
    this.#bytes.copy(copied, 0, start, start + size);
    return copied;
  }

  /** Of a redirected client. */
  original(index: number): Uint8Array {
    return this.#requestAt(index);
  }

  #requestAt(index: number): Buffer {
    return this.#part(index, REQUEST, this.#number(index, REQUEST_LENGTH));
  }

  writeDial(index: number, dial: Dial): void {
    this.#write(index, 0, dial.address);
    this.#setNumber(index, ADDRESS_LENGTH, dial.address.length);
    this.#setNumber(index, MARK, dial.mark | 0);
    this.#setNumber(index, TIMEOUT, dial.timeoutMs);
    this.#setNumber(index, IDLE, dial.idleSeconds);
    this.#setNumber(index, INTERVAL, dial.intervalSeconds);
    const device = index * REQUEST_SLOT_BYTES + DEVICE;
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
}

/** By number. */
const SWITCHES: readonly (Switched | null)[] = [null, "frames", "stream"];
/** Of the tag of a stream in a session: its request is SESSION(4) ADDRESS, the slot of the session and where it leads. */
export const OF_SESSION = 1 << 21;
export const SESSION_BYTES = 4;
// Tag: LISTENER(8 bits) HAS_METHOD_REPLY(1) SWITCHED(2) REQUEST_SLOT(10) OF_SESSION(1)
export const tag = (
  listener: number,
  greeted: boolean,
  index: number,
  switched: Switched | null = null,
): number => listener | (greeted ? 256 : 0) | (SWITCHES.indexOf(switched) << 9) | (index << 11);
export const listenerOf = (word: number): number => word & 255;
/** So much of the handshake's answer the worker has sent. */
export const repliedBytesOf = (word: number): number => ((word & 256) === 0 ? 0 : NO_AUTHENTICATION.length);
/** What the worker has switched it to. */
export const switchedOf = (word: number): Switched | null => itemAt(SWITCHES, (word >>> 9) & 3);
export const requestSlotOf = (word: number): number => (word >>> 11) & (REQUEST_SLOTS - 1);
