/** The life of a worker: one blocking epoll loop. */
import type { MessagePort } from "node:worker_threads";
import type { PendingBounds } from "#net/listen/pending-limiter.ts";
import type { AcceptCalls } from "#platform/linux/accept-calls.ts";
import { bytesOfIp } from "#net/address/ip.ts";
import type { AcceptMemory } from "#dataplane/workers/shared/accept-memory.ts";
import type { VersionWord } from "#dataplane/workers/shared/decision-data.ts";
import { describeWire } from "#dataplane/workers/shared/describe-wire.ts";
import type { RelayMemory } from "#dataplane/workers/shared/relay-memory.ts";
import { GRANT_WANTED } from "#dataplane/workers/shared/opcodes.ts";
import type { AtSeam } from "#dataplane/workers/shared/seams.ts";
import { NO_MESSAGE, specOf } from "#dataplane/workers/shared/wire-spec.ts";
import type { Wires } from "#dataplane/workers/wire/open-wire.ts";
import { Acceptor } from "./acceptor.ts";
import { Alarms } from "./alarms.ts";
import { CommandReader } from "./command-reader.ts";
import { Decider } from "./decider.ts";
import { EventReporter } from "./event-reporter.ts";
import { LISTENER_DATA } from "./listeners.ts";
import type { AcceptorHost } from "./pending-task.ts";
import { Pipes } from "./pipes.ts";
import type { TaskIo } from "./task.ts";
import { TaskSlots } from "./task-slots.ts";
import { Turns } from "./turns.ts";

/** It is woken by its signal; this is for a process that ends without saying so. */
const LONGEST_SLEEP_MS = 3_000;
const SIGNAL = 0xffff_ffff;

export interface LoopOptions {
  readonly calls: AcceptCalls;
  readonly table: RelayMemory;
  readonly acceptor: AcceptMemory;
  /** For the pipes that this thread may hold. */
  readonly pipes: SharedArrayBuffer;
  readonly wires: Wires;
  /** Wakes the main thread: there are events. */
  readonly post: () => void;
  /** A fault of ours, which costs the connection in which it happened. */
  readonly onFault: (fault: unknown) => void;
  /** Of clients that have not authenticated yet. */
  readonly unauthenticated: PendingBounds;
  /** How many there are that accept clients, this one among them. */
  readonly threads: number;
  /** What connections are decided by, and which version of it is in force. */
  readonly decisions: MessagePort;
  readonly version: VersionWord;
  /** Gives back what the thread's start took: once, when nothing has happened for a while. */
  readonly collect?: (() => void) | null;
  /** Of tests only. */
  readonly atSeam?: AtSeam | undefined;
}

export class Loop {
  readonly #calls: AcceptCalls;
  readonly #table: RelayMemory;
  readonly #post: () => void;
  readonly #events: EventReporter;
  readonly #io: TaskIo;
  readonly #tasks: TaskSlots;
  readonly #turns: Turns;
  readonly #commands: CommandReader;
  readonly #acceptor: Acceptor;
  readonly #alarms = new Alarms();
  #collect: (() => void) | null;
  #sleepMs = LONGEST_SLEEP_MS;

  constructor(options: LoopOptions) {
    const { calls, table, wires, onFault, atSeam } = options;
    this.#calls = calls;
    this.#table = table;
    this.#post = options.post;
    this.#collect = options.collect ?? null;
    this.#events = new EventReporter(table, options.post, atSeam);
    this.#io = this.#openIo(options);
    table.epoll = calls.openEpoll();
    if (table.epoll < 0 || calls.watch(table.epoll, table.signal, SIGNAL) < 0)
      throw new Error("a worker cannot watch its signal");
    const parts = { calls, table, wires, io: this.#io, alarms: this.#alarms, events: this.#events };
    const onClosed = (slot: number): boolean => this.#acceptor.onClosed(slot);
    this.#tasks = new TaskSlots({ ...parts, onClosed, atSeam });
    this.#turns = new Turns({ ...parts, tasks: this.#tasks, onFault });
    this.#acceptor = this.#openAcceptor(options);
    this.#commands = new CommandReader({
      calls,
      table,
      wires,
      tasks: this.#tasks,
      turns: this.#turns,
      acceptor: this.#acceptor,
    });
  }

  #openAcceptor(options: LoopOptions): Acceptor {
    const { calls, table, acceptor: memory, unauthenticated, version, decisions } = options;
    const host = this.#hostOf(options);
    const decider = new Decider(memory, host, version, decisions);
    return new Acceptor(calls, table, memory, host, unauthenticated, decider);
  }

  #openIo({ calls, table, pipes }: LoopOptions): TaskIo {
    const ask = (index: number, bytes: number): void => {
      table.asked[index] = bytes;
      this.#events.report(index >>> 1, GRANT_WANTED + (index & 1));
    };
    const { counts } = table;
    return { calls, pipes: new Pipes(calls, pipes), counts, ask, bufferedBytes: 0, wakeAtMs: Infinity };
  }

  #hostOf({ calls, table, wires, threads, atSeam }: LoopOptions): AcceptorHost {
    const { epoll } = table;
    return {
      epoll,
      io: this.#io,
      watch: (slot, fd, side) => calls.watch(epoll, fd, slot * 2 + side) >= 0,
      put: (slot, task) => this.#tasks.set(slot, task),
      wake: (index, events = 0) => this.#turns.enqueue(index, events),
      end: (slot, isFault) => this.#tasks.end(slot, isFault),
      threads,
      report: (slot, kind) => this.#events.report(slot, kind),
      post: (message) => wires.post(message),
      takeRules: () => wires.takeRules(),
      mayBeOwn: (ip) => calls.mayBeOwn(bytesOfIp(ip)),
      reportLazily: (slot, kind) => this.#events.reportLazily(slot, kind),
      begin: (index, wire) => describeWire(table, index, specOf(wire)) ?? NO_MESSAGE,
      open: (index, message) => wires.open(index, message),
      pair: (slot, messages) => this.#tasks.pair(slot, messages),
      ssl: () => wires.ssl(),
      nodes: wires.nodes,
      browsers: wires.browsers,
      atSeam,
    };
  }

  /** Blocks until the main thread says stop; every remaining connection is reset. */
  run(): void {
    while (!this.#table.stopped) this.#round(this.#turns.isIdle && this.#table.fallAsleep());
    this.finish();
  }

  /**
   * For a thread with an event loop of its own, which calls it when `table.epoll` is readable. Answers when it is to be called
   * again at the latest, in ms; 0: in the next turn.
   */
  poll(): number {
    this.#round(false);
    return this.#turns.isIdle && this.#table.fallAsleep() ? this.#sleepMs : 0;
  }

  /** The same where nothing has happened for a while. */
  rest(): void {
    this.#io.pipes.closeIdle();
    this.#collect?.();
    this.#collect = null;
  }

  /** A wire without a socket is ready for something, as epoll says it of one; `poll` is to be called. */
  onWire(index: number, events: number): void {
    this.#turns.enqueue(index, events);
  }

  #round(mayWait: boolean): void {
    const count = this.#calls.wait(this.#table.epoll, mayWait ? this.#sleepMs : 0);
    this.#table.wakeUp();
    if (count === 0 && mayWait) this.rest();
    for (let at = 0; at < count; at++) this.#onEvent(this.#calls.dataAt(at), this.#calls.eventsAt(at));
    this.#commands.takeAll();
    this.#turns.takeQueued();
    this.#alarms.ring((slot) => this.#turns.wake(slot));
    if (count > 0 || !mayWait) this.#table.endTurn();
    const sleepMs = this.#alarms.sleepMs(LONGEST_SLEEP_MS);
    const acceptor = this.#acceptor;
    this.#sleepMs = this.#events.signal(acceptor.sessions.tick(acceptor.tick(sleepMs)), count > 0);
  }

  #onEvent(data: number, events: number): void {
    if (data === SIGNAL) return; // edge-triggered: it need not be cleared
    if (data >= LISTENER_DATA) this.#acceptor.accept(data - LISTENER_DATA);
    else this.#turns.onEvents(data, events);
  }

  /** Every remaining connection is reset, and nothing is to be called any more. */
  finish(): void {
    for (const slot of this.#tasks.taken()) this.#tasks.end(slot, true);
    this.#io.pipes.closeIdle();
    const { epoll } = this.#table;
    this.#table.epoll = -1;
    this.#calls.close(epoll);
    this.#post();
  }
}
