import type { Member } from "#net/crowd.ts";
import type { Ssl } from "#platform/linux/ssl.ts";
import { BLOCKED_BY_WRITE } from "#platform/linux/ssl.ts";
import { EAGAIN, FAULT, HANGUP, PEER_ENDED, READABLE } from "#platform/linux/relay-calls.ts";
import { WAITS } from "./conversation.ts";
import type { Outcome, Side } from "./conversation.ts";
import type { Front } from "./front.ts";
import type { Newcomer } from "./newcomer.ts";
import { tag } from "./front-table.ts";
import type { Line } from "./line.ts";
import { PLAIN, PORT_WORDS, TLS } from "./port.ts";
import { SHAKEN } from "./shared-table.ts";

/** Words of the client's place, as for a port of TLS: SSL STAGE FAULT */
export const STAGE_WORD = 1;
export const FAULT_WORD = 2;
/** The handshake is done. */
export const DONE = 0;
/** It is not, perhaps not even begun (then there is no SSL object): whoever takes it goes on with it. */
export const BEGUN = 1;
/** Why, is in the fault. Nothing is left of it, nor of the next ones. */
export const FAILED = 2;
export const LATE = 3;

/** What the library's object takes in the middle of a handshake, measured with RSA and P-256. */
const OBJECT_BYTES = 60 * 1024;

const NEWS = READABLE | PEER_ENDED | HANGUP | FAULT;
/** What is read of one whose handshake has failed, so that the system does not answer with a reset where there was an end. */
const LAST_BYTES = 64 * 1024;

/**
 * A client of a TLS listener from accept to the end of its handshake. Then it is the main thread's, with its descriptor
 * and the library's object: this thread has nothing of it any more but the slot.
 */
export class Shaking implements Newcomer {
  queued = false;
  readonly halfClosed = false;
  line: Line<Newcomer> | null = null;
  before: Newcomer | null = null;
  behind: Newcomer | null = null;
  deadlineMs = 0;
  member: Member | null = null;
  readonly slot: number;
  readonly listener: number;
  readonly fd: number;
  readonly #front: Front;
  /** 0: there is none yet. Who only connects costs none. */
  #object = 0n;
  /** The handshake waits for room in the socket. */
  #blocked = false;

  constructor(front: Front, slot: number, listener: number, fd: number) {
    this.#front = front;
    this.slot = slot;
    this.listener = listener;
    this.fd = fd;
  }

  begin(): boolean {
    return false; // it speaks first
  }

  notice(_side: Side, events: number): boolean {
    return this.#blocked || (events & NEWS) !== 0;
  }

  limit(): void {} // nothing of it is counted yet

  grant(): void {}

  run(): Outcome {
    const ssl = this.#front.host.ssl();
    if (ssl === null || !this.#hasObject(ssl)) this.handOver();
    else this.#shake(ssl);
    return WAITS;
  }

  #hasObject(ssl: Ssl): boolean {
    if (this.#object !== 0n) return true;
    const context = Atomics.load(this.#front.shared.contexts, this.listener);
    if (context === 0n) return false;
    this.#front.host.atSeam?.("context");
    this.#object = ssl.accept(context, this.fd, false);
    if (this.#object === 0n) return false;
    const { owned, portWords } = this.#front.table;
    portWords[this.slot * 2 * PORT_WORDS] = Number(this.#object);
    owned[this.slot * 2] = TLS;
    this.#front.grew(this, OBJECT_BYTES);
    return true;
  }

  #shake(ssl: Ssl): void {
    const answer = ssl.handshake(this.#object);
    this.#blocked = answer === BLOCKED_BY_WRITE;
    if (this.#blocked || answer === EAGAIN) return;
    if (answer === 1) this.#hand(DONE, 0);
    else this.#fail(FAILED, ssl.fault);
  }

  handOver(): void {
    this.#hand(BEGUN, 0);
  }

  #hand(stage: number, fault: number): void {
    const { calls, host, shared, table } = this.#front;
    const at = this.slot * 2 * PORT_WORDS;
    if (this.#object === 0n) table.portWords[at] = 0;
    table.portWords[at + STAGE_WORD] = stage;
    table.portWords[at + FAULT_WORD] = fault;
    shared.tags[this.slot] = tag(this.listener, false, 0);
    // Whoever gets the descriptor watches it with another epoll, and gives it other threads.
    if ((table.descriptors[this.slot * 2] as number) >= 0) calls.unwatch(host.epoll, this.fd);
    this.#leave();
    host.report(this.slot, SHAKEN);
  }

  #fail(stage: number, fault: number): void {
    const { calls } = this.#front;
    this.#free();
    calls.receive(this.fd, LAST_BYTES);
    this.#forgetDescriptor();
    this.#front.host.atSeam?.("closing");
    calls.close(this.fd);
    this.#hand(stage, fault);
  }

  timedOut(): void {
    this.#fail(LATE, 0);
  }

  /** The main thread hears nothing of it. */
  end(isFault: boolean): void {
    this.#free();
    this.#forgetDescriptor();
    this.#front.calls.discard(this.fd, isFault);
    this.#leave();
    this.#front.freeSlot(this.slot);
  }

  drop(): void {
    this.#free();
    this.#front.gone(this);
  }

  /** First in the table: should this thread die, nobody closes a number that may be another's by then. */
  #forgetDescriptor(): void {
    this.#front.table.descriptors[this.slot * 2] = -1;
  }

  #free(): void {
    if (this.#object === 0n) return;
    this.#front.table.owned[this.slot * 2] = PLAIN;
    this.#front.host.atSeam?.("freeing");
    this.#front.host.ssl()?.free(this.#object);
    this.#object = 0n;
  }

  #leave(): void {
    this.#front.host.put(this.slot, null);
    this.#front.gone(this);
  }
}
