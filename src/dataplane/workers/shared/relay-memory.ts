/**
 * The memory that a worker and the main thread share: the connections by slot, and a queue in each direction. The main
 * thread owns a slot until it has queued `ADD`, and again once it has read the event that the slot has ended.
 */

import { COMMANDS, EVENTS } from "./opcodes.ts";
import { WIRE_NUMBERS } from "./wire-spec.ts";
import { WordLayout } from "./word-layout.ts";
import { int32At } from "#lib/at.ts";

/** State of a message: it lies in the port. */
export const POSTED = 1;
/** The worker has written it. */
export const RETURNED = 2;
/** It stands in the wire's numbers; see short-layer.ts. */
export const IN_NUMBERS = 3;

/** Slots of one thread. */
export const CAPACITY = 1 << 16;
/** From this slot on they are the thread's to give out, to clients that it accepts. One more waits in the kernel. */
export const FIRST_ACCEPTED_SLOT = CAPACITY >>> 1;
/**
 * Never full, however long the worker is suspended, so it is not checked. For a slot below `FIRST_ACCEPTED_SLOT` at
 * most seven commands wait: of a connection that the worker has ended a grant of each direction, a change of its mode
 * (the next one is posted when that was executed) and an end (posted once); of the next one its addition, a change of
 * its mode and its end, but no grant, for it has not asked. For an accepted slot there are two grants, a change, an
 * end, its release and that it joined: the worker itself gives those out. That is seven at most; the remaining space is
 * for 256 listeners, one change of each one's contexts and one version.
 */
const COMMAND_RING = CAPACITY * 8;
/**
 * Nor is this one: of a slot wait one of those events that begin it (a request for a grant comes after the answer), a
 * request of each direction and its end. A direction that no longer has to ask is told to ask again behind its request.
 */
const EVENT_RING = CAPACITY * 4;

const STOP = 0;
const ASLEEP = 1;
const SIGNALLED = 2;
const COMMANDS_WRITTEN = 3;
const COMMANDS_READ = 4;
const EVENTS_WRITTEN = 5;
const EVENTS_READ = 6;
const SIGNAL = 7;
const ACCEPTED_SLOTS = 8;
const EVENT_SIGNAL = 9;
const EPOLL = 10;
const TURNS = 11;
const GONE = 12;
const HEADER_WORDS = 16;

const WORDS = HEADER_WORDS + COMMAND_RING + EVENT_RING + CAPACITY * 10;
const COUNTS_AT = WORDS * 4;
const TABLE_BYTES = COUNTS_AT + CAPACITY * (4 + 2 * WIRE_NUMBERS) * 8;

/** Only the pages of slots in use are ever touched, and those of the rings: all 3 MiB after half a million commands. */
export function newRelayMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(TABLE_BYTES);
}

const always = (): boolean => true;

export class RelayMemory {
  /** Descriptors, two a slot: client, remote. -1: closed. */
  readonly descriptors: Int32Array;
  /** 1 once a direction of the slot has ended. */
  readonly halfClosed: Int32Array;
  /** Bytes handed on, two a slot: upload, download. One writer, the worker. */
  readonly counts: Float64Array;
  /** Two a slot: what a direction asks for, and then what it is granted, in bytes. */
  readonly asked: Float64Array;
  /** 1: the slot begins with asking. */
  readonly limited: Int32Array;
  /** Two a slot: what kind of port each descriptor has. */
  readonly kinds: Int32Array;
  /**
   * Two a slot: the kind of wire that is to be freed with its numbers, or `PLAIN`. The worker takes that upon itself
   * before it frees anything: whatever is left at the end of the slot, or of the thread, is the main thread's to free.
   */
  readonly owned: Int32Array;
  /** Two for each slot: whether a message goes with the wire, `POSTED` or `IN_NUMBERS`, or has come back, `RETURNED`; 0: none. */
  readonly messageStates: Int32Array;
  /** `PORT_WORDS` a descriptor: what its port is made of. */
  readonly wireNumbers: Float64Array;
  readonly #header: Int32Array;
  readonly #commands: Int32Array;
  readonly #events: Int32Array;
  /** The worker's: index of its next command. */
  #nextRead = 0;

  constructor(memory: SharedArrayBuffer) {
    const words = new WordLayout(memory);
    this.#header = words.take(HEADER_WORDS);
    this.#commands = words.take(COMMAND_RING);
    this.#events = words.take(EVENT_RING);
    this.descriptors = words.take(CAPACITY * 2);
    this.halfClosed = words.take(CAPACITY);
    this.limited = words.take(CAPACITY);
    this.kinds = words.take(CAPACITY * 2);
    this.owned = words.take(CAPACITY * 2);
    this.messageStates = words.take(CAPACITY * 2);
    this.counts = new Float64Array(memory, COUNTS_AT, CAPACITY * 2);
    this.asked = new Float64Array(memory, COUNTS_AT + CAPACITY * 2 * 8, CAPACITY * 2);
    this.wireNumbers = new Float64Array(memory, COUNTS_AT + CAPACITY * 4 * 8, CAPACITY * 2 * WIRE_NUMBERS);
  }

  /** The eventfd that wakes the worker. */
  get signal(): number {
    return int32At(this.#header, SIGNAL);
  }

  set signal(fd: number) {
    this.#header[SIGNAL] = fd;
  }

  /** The eventfd that wakes the main thread. */
  get eventSignal(): number {
    return int32At(this.#header, EVENT_SIGNAL);
  }

  set eventSignal(fd: number) {
    this.#header[EVENT_SIGNAL] = fd;
  }

  /** The worker's, for the main thread after the worker's end; -1: none. */
  get epoll(): number {
    return int32At(this.#header, EPOLL);
  }

  set epoll(fd: number) {
    this.#header[EPOLL] = fd;
  }

  /** Accepted slots that were ever given out. */
  get acceptedSlots(): number {
    return int32At(this.#header, ACCEPTED_SLOTS);
  }

  set acceptedSlots(count: number) {
    this.#header[ACCEPTED_SLOTS] = count;
  }

  /** Changes after whatever the worker does: as long as it stays the same, so do all counts. */
  get turns(): number {
    return Atomics.load(this.#header, TURNS);
  }

  // For the main thread.

  /** True: the worker sleeps and must be woken by its signal. */
  command(slot: number, command: number): boolean {
    this.commandLazily(slot, command);
    return Atomics.exchange(this.#header, ASLEEP, 0) === 1;
  }

  /** For a command that can wait until the thread has something else to do. */
  commandLazily(slot: number, command: number): void {
    const written = int32At(this.#header, COMMANDS_WRITTEN);
    this.#commands[written % COMMAND_RING] = slot * COMMANDS + command;
    Atomics.store(this.#header, COMMANDS_WRITTEN, (written + 1) % (COMMAND_RING * 2));
  }

  /** Commands that the worker has not obeyed yet. */
  get commandsLeft(): number {
    const read = Atomics.load(this.#header, COMMANDS_READ);
    return (int32At(this.#header, COMMANDS_WRITTEN) - read + COMMAND_RING * 2) % (COMMAND_RING * 2);
  }

  stop(): void {
    Atomics.store(this.#header, STOP, 1);
  }

  /**
   * Passes the events since the last time, in order, also when `on` re-enters; those that the worker reports meanwhile
   * are for the next time, which its signal announces. False: `goesOn` has returned false, and the remaining events
   * must be taken later.
   */
  takeEvents(on: (slot: number, kind: number) => void, goesOn: () => boolean = always): boolean {
    Atomics.store(this.#header, SIGNALLED, 0);
    for (let left = this.#eventsLeft; left > 0; left--) {
      if (this.#eventsLeft === 0) return true; // `on` came back here
      const read = int32At(this.#header, EVENTS_READ);
      const word = int32At(this.#events, read % EVENT_RING);
      this.#header[EVENTS_READ] = (read + 1) % (EVENT_RING * 2);
      on(Math.floor(word / EVENTS), word % EVENTS);
      if (left > 1 && !goesOn()) return false;
    }
    return true;
  }

  get #eventsLeft(): number {
    const written = Atomics.load(this.#header, EVENTS_WRITTEN);
    return (written - int32At(this.#header, EVENTS_READ) + EVENT_RING * 2) % (EVENT_RING * 2);
  }

  // For the worker.

  get stopped(): boolean {
    return Atomics.load(this.#header, STOP) === 1;
  }

  /** Of a thread with an event loop: it has closed all, and ends now. */
  goAway(): void {
    Atomics.store(this.#header, GONE, 1);
    Atomics.notify(this.#header, GONE);
  }

  /** Blocks until that thread has said so, or for `ms`. */
  awaitGone(ms: number): void {
    Atomics.wait(this.#header, GONE, 0, ms);
  }

  /** What was done has been counted. */
  endTurn(): void {
    Atomics.add(this.#header, TURNS, 1);
  }

  /** False: there is something to do. Else the next queued command raises the signal. */
  fallAsleep(): boolean {
    Atomics.store(this.#header, ASLEEP, 1);
    const idle =
      Atomics.load(this.#header, COMMANDS_WRITTEN) === this.#header[COMMANDS_READ] && !this.stopped;
    if (!idle) this.wakeUp();
    return idle;
  }

  wakeUp(): void {
    Atomics.store(this.#header, ASLEEP, 0);
  }

  /** -1: none waits. The one before has been obeyed. */
  nextCommand(): number {
    Atomics.store(this.#header, COMMANDS_READ, this.#nextRead);
    if (this.#nextRead === Atomics.load(this.#header, COMMANDS_WRITTEN)) return -1;
    const word = int32At(this.#commands, this.#nextRead % COMMAND_RING);
    this.#nextRead = (this.#nextRead + 1) % (COMMAND_RING * 2);
    return word;
  }

  report(slot: number, kind: number): void {
    const written = int32At(this.#header, EVENTS_WRITTEN);
    this.#events[written % EVENT_RING] = slot * EVENTS + kind;
    Atomics.store(this.#header, EVENTS_WRITTEN, (written + 1) % (EVENT_RING * 2));
  }

  /** True: the main thread has not been signalled since it took events. */
  mustSignal(): boolean {
    return Atomics.exchange(this.#header, SIGNALLED, 1) === 0;
  }
}
