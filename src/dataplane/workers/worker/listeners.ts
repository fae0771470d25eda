/** The listening sockets from which one worker accepts, and what the clients of each have in common. */
import { performance } from "node:perf_hooks";
import type { AcceptCalls } from "#platform/linux/accept-calls.ts";
import { EAGAIN, EINTR } from "#platform/linux/relay-calls.ts";
import { isWildcard, SOCKADDR_BYTES } from "#platform/linux/sockaddr.ts";
import { DRAINS, OPEN, type AcceptMemory } from "#dataplane/workers/shared/accept-memory.ts";
import { HANDSHAKES } from "#dataplane/workers/shared/handshakes.ts";
import { int32At, itemAt } from "#lib/at.ts";

/** In epoll data, with the listener's number: no slot is as large. */
export const LISTENER_DATA = 0x4000_0000;

/** Without descriptors nothing is accepted for so long. */
const PAUSE_MS = 100;
/** In place of a descriptor: another try may give one. */
const TRY_AGAIN = -1;
/** There is none to be had now. */
export const NO_MORE = -2;

const ECONNABORTED = -103;

export class Listeners {
  readonly #calls: AcceptCalls;
  readonly #shared: AcceptMemory;
  readonly #epoll: number;
  readonly #listening = new Set<number>();
  readonly #names: Uint8Array[] = [];
  /** As the shared memory has them. */
  readonly #upgradePaths: string[] = [];
  /** Those that are bound to one address, which is that of all their clients' connections on this side, too. */
  readonly #bound = new Set<number>();
  readonly #paused = new Set<number>();
  #resumesAtMs = 0;

  constructor(calls: AcceptCalls, shared: AcceptMemory, epoll: number) {
    this.#calls = calls;
    this.#shared = shared;
    this.#epoll = epoll;
  }

  open(listener: number): void {
    this.#listening.add(listener);
    const { address } = this.#calls;
    const isKnown = this.#calls.localName(this.#descriptorOf(listener)) >= 0;
    this.#upgradePaths[listener] = this.#shared.upgradePath(listener);
    this.#names[listener] = isKnown ? address.slice() : new Uint8Array(SOCKADDR_BYTES);
    const isBound = isKnown && !isWildcard(address) && this.handshakeOf(listener) !== "transparent";
    if (isBound) this.#bound.add(listener);
    else this.#bound.delete(listener);
    this.#watch(listener);
  }

  /** Its queue is left to others, once it is drained where it is to be. False: it is none of these. */
  close(listener: number): boolean {
    if (!this.#listening.delete(listener)) return false;
    this.#paused.delete(listener);
    this.#calls.unwatch(this.#epoll, this.#descriptorOf(listener));
    return true;
  }

  isOpen(listener: number): boolean {
    return this.#listening.has(listener);
  }

  /** What the kernel has queued is still to be taken. */
  drains(listener: number): boolean {
    return Atomics.load(this.#shared.states, listener) === DRAINS;
  }

  /** The descriptor of one more client, whose address is in `AcceptCalls.address`; or `TRY_AGAIN`, or `NO_MORE`. */
  accept(listener: number): number {
    const fd = this.#calls.accept(this.#descriptorOf(listener));
    if (fd >= 0) return fd;
    if (fd === ECONNABORTED || fd === EINTR) return TRY_AGAIN;
    if (fd !== EAGAIN) this.pause(listener);
    return NO_MORE;
  }

  /** False: its queue has another owner already. */
  mayAccept(listener: number): boolean {
    const state = Atomics.load(this.#shared.states, listener);
    return state === OPEN || state === DRAINS;
  }

  #watch(listener: number): void {
    if (this.#calls.watchListener(this.#epoll, this.#descriptorOf(listener), LISTENER_DATA + listener) < 0)
      this.pause(listener);
  }

  /** Nothing is accepted of it for a moment. */
  pause(listener: number): void {
    if (!this.#listening.has(listener)) return; // it is drained for the last time
    this.#calls.unwatch(this.#epoll, this.#descriptorOf(listener));
    this.#paused.add(listener);
    this.#resumesAtMs = performance.now() + PAUSE_MS;
  }

  /** How many are paused. */
  get paused(): number {
    return this.#paused.size;
  }

  /** Once in a while, where there are any paused. */
  resume(nowMs: number): void {
    if (this.#paused.size === 0 || nowMs < this.#resumesAtMs) return;
    const paused = [...this.#paused];
    this.#paused.clear();
    for (const listener of paused) this.#watch(listener);
  }

  #descriptorOf(listener: number): number {
    return int32At(this.#shared.listeners, listener);
  }

  handshakeOf(listener: number): (typeof HANDSHAKES)[number] {
    return HANDSHAKES[int32At(this.#shared.handshakes, listener)] ?? "mixed";
  }

  /** Where its clients ask for a switch from HTTP/1.1 first; empty: they do not. */
  upgradePath(listener: number): string {
    return itemAt(this.#upgradePaths, listener);
  }

  /** Its own socket address. */
  nameOf(listener: number): Uint8Array {
    return itemAt(this.#names, listener);
  }

  /** The listening side's own address for a client; to be used at once. Below 0: it is a stream of one, which has that of its session. */
  localOf(listener: number, fd: number): Uint8Array {
    if (fd < 0 || this.#bound.has(listener)) return this.nameOf(listener);
    this.#calls.localName(fd);
    return this.#calls.address;
  }
}
