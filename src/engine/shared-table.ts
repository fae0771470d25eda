/**
 * What a relay thread and the main thread share: the conversations by slot, and a queue in each direction. The main
 * thread owns a slot until it has queued `ADD`, and again from when it reads the slot in the queue of those that ended.
 */

/** Command words are `slot * COMMANDS + command`. */
export const COMMANDS = 4;
export const ADD = 0;
/** As a fault would end it. */
export const RESET = 1;
export const CLOSE = 2;

/** Conversations of one thread; one more is left to the portable pump. */
export const CAPACITY = 1 << 15;
/** Of one slot no more than three commands can wait. */
const COMMAND_RING = CAPACITY * COMMANDS;

const STOP = 0;
const ASLEEP = 1;
const TOLD = 2;
const COMMANDS_WRITTEN = 3;
const COMMANDS_READ = 4;
const ENDED_WRITTEN = 5;
const ENDED_READ = 6;
const SIGNAL = 7;
const HEADER_WORDS = 16;

const WORDS = HEADER_WORDS + COMMAND_RING + CAPACITY * 4;
const COUNTS_AT = WORDS * 4;
const TABLE_BYTES = COUNTS_AT + CAPACITY * 2 * 8;

/** Only the pages of slots in use are ever touched. */
export function newTableMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(TABLE_BYTES);
}

export class SharedTable {
  /** Descriptors, two a slot: client, remote. -1: closed. */
  readonly descriptors: Int32Array;
  /** 1 once a direction of the slot has ended. */
  readonly halfClosed: Int32Array;
  /** Bytes handed on, two a slot: upload, download. One writer, the relay thread. */
  readonly counts: Float64Array;
  readonly #header: Int32Array;
  readonly #commands: Int32Array;
  readonly #ended: Int32Array;

  constructor(memory: SharedArrayBuffer) {
    let at = 0;
    const words = (length: number): Int32Array => {
      const view = new Int32Array(memory, at * 4, length);
      at += length;
      return view;
    };
    this.#header = words(HEADER_WORDS);
    this.#commands = words(COMMAND_RING);
    this.#ended = words(CAPACITY);
    this.descriptors = words(CAPACITY * 2);
    this.halfClosed = words(CAPACITY);
    this.counts = new Float64Array(memory, COUNTS_AT, CAPACITY * 2);
  }

  /** The eventfd that wakes the relay thread. */
  get signal(): number {
    return this.#header[SIGNAL] as number;
  }

  set signal(fd: number) {
    this.#header[SIGNAL] = fd;
  }

  // For the main thread.

  /** True: the relay thread sleeps and must be woken by its signal. */
  command(slot: number, command: number): boolean {
    const written = this.#header[COMMANDS_WRITTEN] as number;
    this.#commands[written % COMMAND_RING] = slot * COMMANDS + command;
    Atomics.store(this.#header, COMMANDS_WRITTEN, (written + 1) % (COMMAND_RING * 2));
    return Atomics.exchange(this.#header, ASLEEP, 0) === 1;
  }

  stop(): void {
    Atomics.store(this.#header, STOP, 1);
  }

  /** Gives each slot that has ended since; from then on it is free. */
  takeEnded(on: (slot: number) => void): void {
    Atomics.store(this.#header, TOLD, 0);
    let read = this.#header[ENDED_READ] as number;
    while (read !== Atomics.load(this.#header, ENDED_WRITTEN)) {
      const slot = this.#ended[read % CAPACITY] as number;
      read = (read + 1) % (CAPACITY * 2);
      this.#header[ENDED_READ] = read;
      on(slot);
    }
  }

  // For the relay thread.

  get stopped(): boolean {
    return Atomics.load(this.#header, STOP) === 1;
  }

  /** False: there is something to do. Else whoever queues a command raises the signal. */
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

  /** -1: none waits. */
  nextCommand(): number {
    const read = this.#header[COMMANDS_READ] as number;
    if (read === Atomics.load(this.#header, COMMANDS_WRITTEN)) return -1;
    const word = this.#commands[read % COMMAND_RING] as number;
    this.#header[COMMANDS_READ] = (read + 1) % (COMMAND_RING * 2);
    return word;
  }

  pushEnded(slot: number): void {
    const written = this.#header[ENDED_WRITTEN] as number;
    this.#ended[written % CAPACITY] = slot;
    Atomics.store(this.#header, ENDED_WRITTEN, (written + 1) % (CAPACITY * 2));
  }

  /** True: the main thread does not know yet that something has ended. */
  mustTell(): boolean {
    return Atomics.exchange(this.#header, TOLD, 1) === 0;
  }
}
