/** The memory that accepting workers share with the main thread beside the relay memory: listeners, and what is known of clients. */
import { portOf, SOCKADDR_BYTES } from "#platform/linux/sockaddr.ts";
import { byteAt } from "#lib/at.ts";
import { DECISION_BYTES, DecisionMemory } from "./decision-memory.ts";
import { REQUEST_MEMORY_BYTES, RequestMemory } from "./request-memory.ts";
import { WordLayout } from "./word-layout.ts";

/** At one time; one more is served by the event loop. */
export const LISTENERS = 256;

/** States of a listener. */
export const CLOSED = 0;
export const OPEN = 1;
/** What the kernel has queued is still taken. */
export const DRAINS = 2;

/** Of a path to be asked for; the connections of a listener with a longer one are the event loop's. */
export const MOST_PATH_BYTES = 255;
// LENGTH(1) PATH(n)
const PATH_BYTES = 1 + MOST_PATH_BYTES;

const LISTENER_WORDS = 3;
const REQUESTS_AT = LISTENERS * LISTENER_WORDS * 4;
const CONTEXTS_AT = REQUESTS_AT + REQUEST_MEMORY_BYTES;
const PATHS_AT = CONTEXTS_AT + (LISTENERS + 1) * 8;
const SLOTS_AT = PATHS_AT + LISTENERS * PATH_BYTES;
/** Of each slot, in front of what was decided: a tag, and the socket address of its client. */
const CLIENT_BYTES = 4 + SOCKADDR_BYTES;

export function newAcceptMemory(slots: number): SharedArrayBuffer {
  return new SharedArrayBuffer(SLOTS_AT + slots * (CLIENT_BYTES + DECISION_BYTES));
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
  /** Of each slot: its listener, whether its greeting was answered, its request slot; see slot-tag.ts. */
  readonly tags: Int32Array;
  /** Of each slot: the socket address of its client. */
  readonly sources: Uint8Array;
  readonly requests: RequestMemory;
  readonly decisions: DecisionMemory;
  readonly #paths: Buffer;

  constructor(memory: SharedArrayBuffer) {
    const words = new WordLayout(memory);
    this.listeners = words.take(LISTENERS);
    this.states = words.take(LISTENERS);
    this.handshakes = words.take(LISTENERS);
    this.requests = new RequestMemory(memory, REQUESTS_AT);
    this.contexts = new BigUint64Array(memory, CONTEXTS_AT, LISTENERS);
    this.onAlpn = new BigUint64Array(memory, CONTEXTS_AT + LISTENERS * 8, 1);
    this.#paths = Buffer.from(memory, PATHS_AT, LISTENERS * PATH_BYTES) as Buffer;
    const slots = (memory.byteLength - SLOTS_AT) / (CLIENT_BYTES + DECISION_BYTES);
    this.tags = new Int32Array(memory, SLOTS_AT, slots);
    this.sources = new Uint8Array(memory, SLOTS_AT + slots * 4, slots * SOCKADDR_BYTES);
    this.decisions = new DecisionMemory(memory, SLOTS_AT + slots * CLIENT_BYTES, slots);
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

  source(slot: number): Uint8Array {
    return this.sources.subarray(slot * SOCKADDR_BYTES, (slot + 1) * SOCKADDR_BYTES);
  }

  sourcePort(slot: number): number {
    return portOf(this.sources, slot * SOCKADDR_BYTES);
  }
}
