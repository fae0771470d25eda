/** How long the clients of one worker are waited for: until they have said what they want, and until that is dialled. */
import { performance } from "node:perf_hooks";
import { DeadlineList } from "#lib/deadline-list.ts";
import type { PendingTask } from "./pending-task.ts";

const HANDSHAKE_MS = 30_000;
/** The same for those whose first bytes are the main thread's: servers that are to look like nothing are silent for so long. */
const FIRST_BYTES_MS = 60_000;
/** The same for a request over HTTP/1.1 in front of these. */
const HEAD_MS = 10_000;
/** How precise deadlines are. */
export const TICK_MS = 50;

export class ClientDeadlines {
  readonly #handshaking = new DeadlineList<PendingTask>();
  readonly #silent = new DeadlineList<PendingTask>();
  readonly #requesting = new DeadlineList<PendingTask>();
  readonly #dialling = new DeadlineList<PendingTask>();
  /** When deadlines were looked at last; 0: nothing had one. */
  #tickAtMs = 0;

  /** Clients that are still to say what they want. */
  get reading(): number {
    return this.#handshaking.size + this.#silent.size + this.#requesting.size;
  }

  get dialling(): number {
    return this.#dialling.size;
  }

  awaitHandshake(one: PendingTask): void {
    this.#await(one, this.#handshaking, HANDSHAKE_MS);
  }

  /** `asksFirst`: for a switch from HTTP/1.1. */
  awaitFirstBytes(one: PendingTask, asksFirst: boolean): void {
    if (asksFirst) this.#await(one, this.#requesting, HEAD_MS);
    else this.#await(one, this.#silent, FIRST_BYTES_MS);
  }

  #await(one: PendingTask, line: DeadlineList<PendingTask>, ms: number): void {
    one.line?.leave(one);
    one.deadlineMs = this.#roughNowMs() + ms;
    line.join(one);
  }

  awaitDial(one: PendingTask, timeoutMs: number): void {
    one.deadlineMs = performance.now() + timeoutMs;
    this.#dialling.join(one);
  }

  onDialled(one: PendingTask): void {
    this.#dialling.leave(one);
  }

  /** `on` may remove the one that it was called with, and no other. */
  forEachReading(on: (one: PendingTask) => void): void {
    this.#handshaking.forEach(on);
    this.#silent.forEach(on);
    this.#requesting.forEach(on);
  }

  forEachDialling(on: (one: PendingTask) => void): void {
    this.#dialling.forEach(on);
  }

  /** Good enough for deadlines. */
  #roughNowMs(): number {
    return this.#tickAtMs === 0 ? (this.#tickAtMs = performance.now()) : this.#tickAtMs;
  }

  /** Nothing has a deadline. */
  rest(): void {
    this.#tickAtMs = 0;
  }

  /** True: a tick has passed since the last one. */
  takeTick(nowMs: number): boolean {
    if (nowMs - this.#tickAtMs < TICK_MS) return false;
    this.#tickAtMs = nowMs;
    return true;
  }

  /** Tells all whose time is up. */
  expire(nowMs: number): void {
    this.#dialling.forEach((one) => {
      if (one.deadlineMs <= nowMs) one.timedOut();
    });
    expire(this.#handshaking, nowMs);
    expire(this.#silent, nowMs);
    expire(this.#requesting, nowMs);
  }
}

/** The first ones are the oldest. */
function expire(line: DeadlineList<PendingTask>, nowMs: number): void {
  for (let { first } = line; first !== null && first.deadlineMs <= nowMs; { first } = line) first.timedOut();
}
