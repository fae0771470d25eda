/** The life of a worker: one blocking epoll loop. */
import type { MessagePort } from "node:worker_threads";
import type { PendingBounds } from "#net/listen/pending-limiter.ts";
import type { AcceptCalls } from "#platform/linux/accept-calls.ts";
import { bytesOfIp } from "#net/address/ip.ts";
import { READABLE } from "#platform/linux/relay-calls.ts";
import { PendingConnection } from "./pending-connection.ts";
import { BACK, FAILED, MORE, WAITS } from "./task.ts";
import { CLIENT } from "#dataplane/workers/shared/sides.ts";
import type { Task, TaskIo, Outcome } from "./task.ts";
import type { Side, FlowDirection } from "#dataplane/workers/shared/sides.ts";
import type { AcceptMemory } from "#dataplane/workers/shared/accept-memory.ts";
import type { VersionWord } from "#dataplane/workers/shared/decision-data.ts";
import { Acceptor, LISTENER_DATA } from "./acceptor.ts";
import { Decider } from "./decider.ts";
import type { AcceptorHost, WireMessages } from "./pending-task.ts";
import { EventReporter } from "./event-reporter.ts";
import { Alarms } from "./alarms.ts";
import { Pipes } from "./pipes.ts";
import { describeWire } from "#dataplane/workers/shared/describe-wire.ts";
import { LEFT_OPEN, NO_MESSAGE, specOf, type WireMessage } from "#dataplane/workers/shared/wire-spec.ts";
import { type Wire } from "#dataplane/workers/wire/wire.ts";
import { RelayTask } from "./relay-task.ts";
import type { Wires } from "#dataplane/workers/wire/open-wire.ts";
import type { AtSeam } from "#dataplane/workers/shared/seams.ts";
import * as codes from "#dataplane/workers/shared/relay-memory.ts";
import {
  ADD,
  GRANT_WANTED,
  CLOSE,
  COMMANDS,
  ENDED,
  GRANT,
  LIMIT,
  RESET,
  type RelayMemory,
} from "#dataplane/workers/shared/relay-memory.ts";
import { Slots } from "#dataplane/workers/shared/slots.ts";
import { float64At, int32At } from "#lib/at.ts";

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

function sideOf(index: number): Side {
  return (index & 1) === CLIENT ? CLIENT : 1;
}

export class Loop {
  readonly #calls: AcceptCalls;
  readonly #table: RelayMemory;
  readonly #wires: Wires;
  readonly #post: () => void;
  readonly #events: EventReporter;
  readonly #onFault: (fault: unknown) => void;
  readonly #atSeam: AtSeam | undefined;
  readonly #io: TaskIo;
  readonly #epoll: number;
  readonly #acceptor: Acceptor;
  readonly #tasks = new Slots<Task>();
  /** Slots of tasks with more to do than one turn allows. */
  #queue: number[] = [];
  readonly #alarms = new Alarms();
  #collect: (() => void) | null;
  #sleepMs = LONGEST_SLEEP_MS;

  constructor(options: LoopOptions) {
    const { calls, table, acceptor, pipes, wires, post, onFault, unauthenticated, atSeam } = options;
    this.#calls = calls;
    this.#table = table;
    this.#wires = wires;
    this.#post = post;
    this.#onFault = onFault;
    this.#atSeam = atSeam;
    this.#collect = options.collect ?? null;
    this.#events = new EventReporter(table, post, atSeam);
    const ask = (index: number, bytes: number): void => {
      table.asked[index] = bytes;
      this.#events.report(index >>> 1, GRANT_WANTED + (index & 1));
    };
    this.#io = {
      calls,
      pipes: new Pipes(calls, pipes),
      counts: table.counts,
      ask,
      bufferedBytes: 0,
      wakeAtMs: Infinity,
    };
    this.#epoll = table.epoll = calls.openEpoll();
    if (this.#epoll < 0 || calls.watch(this.#epoll, table.signal, SIGNAL) < 0)
      throw new Error("a worker cannot watch its signal");
    const host: AcceptorHost = {
      epoll: this.#epoll,
      io: this.#io,
      watch: (slot, fd, side) => calls.watch(this.#epoll, fd, slot * 2 + side) >= 0,
      put: (slot, task) => this.#tasks.set(slot, task),
      wake: (index, events = 0) => this.onWire(index, events),
      end: (slot, isFault) => this.#end(slot, isFault),
      threads: options.threads,
      report: (slot, kind) => this.#events.report(slot, kind),
      post: (message) => wires.post(message),
      takeRules: () => wires.takeRules(),
      mayBeOwn: (ip) => calls.mayBeOwn(bytesOfIp(ip)),
      reportLazily: (slot, kind) => this.#events.reportLazily(slot, kind),
      begin: (index, wire) => describeWire(table, index, specOf(wire)) ?? NO_MESSAGE,
      open: (index, message) => wires.open(index, message),
      pair: (slot, messages) => this.#pair(slot, messages),
      ssl: () => wires.ssl(),
      nodes: wires.nodes,
      browsers: wires.browsers,
      atSeam,
    };
    const decider = new Decider(acceptor, host, options.version, options.decisions);
    this.#acceptor = new Acceptor(calls, table, acceptor, host, unauthenticated, decider);
  }

  /** Blocks until the main thread says stop; every remaining connection is reset. */
  run(): void {
    while (!this.#table.stopped) this.#round(this.#queue.length === 0 && this.#table.fallAsleep());
    this.finish();
  }

  /**
   * For a thread with an event loop of its own, which calls it when `table.epoll` is readable. Answers when it is to be called
   * again at the latest, in ms; 0: in the next turn.
   */
  poll(): number {
    this.#round(false);
    return this.#queue.length === 0 && this.#table.fallAsleep() ? this.#sleepMs : 0;
  }

  /** The same where nothing has happened for a while. */
  rest(): void {
    this.#io.pipes.closeIdle();
    this.#collect?.();
    this.#collect = null;
  }

  /** A wire without a socket is ready for something, as epoll says it of one; `poll` is to be called. */
  onWire(index: number, events: number): void {
    const slot = index >>> 1;
    const task = this.#tasks.get(slot);
    if (task === null || !task.onEvents(sideOf(index), events) || task.queued) return;
    task.queued = true;
    this.#queue.push(slot);
  }

  #round(mayWait: boolean): void {
    const count = this.#calls.wait(this.#epoll, mayWait ? this.#sleepMs : 0);
    this.#table.wakeUp();
    if (count === 0 && mayWait) this.rest();
    for (let at = 0; at < count; at++) this.#onEvent(this.#calls.dataAt(at), this.#calls.eventsAt(at));
    this.#takeCommands();
    this.#takeTurns();
    this.#alarms.ring((slot) => this.#wake(slot));
    if (count > 0 || !mayWait) this.#table.endTurn();
    const sleepMs = this.#alarms.sleepMs(LONGEST_SLEEP_MS);
    const acceptor = this.#acceptor;
    this.#sleepMs = this.#events.signal(acceptor.sessions.tick(acceptor.tick(sleepMs)), count > 0);
  }

  /** Every remaining connection is reset, and nothing is to be called any more. */
  finish(): void {
    for (const slot of this.#tasks.taken()) this.#end(slot, true);
    this.#io.pipes.closeIdle();
    this.#table.epoll = -1;
    this.#calls.close(this.#epoll);
    this.#post();
  }

  #onEvent(data: number, events: number): void {
    if (data === SIGNAL) return; // edge-triggered: it need not be cleared
    if (data >= LISTENER_DATA) return this.#acceptor.accept(data - LISTENER_DATA);
    const slot = data >>> 1;
    const task = this.#tasks.get(slot); // it may have ended earlier in this batch
    if (task === null) return;
    const hasNewEvents = task.onEvents(sideOf(data), events);
    if (hasNewEvents && !task.queued) this.#turn(slot, task);
  }

  #turn(slot: number, task: Task): void {
    const outcome = this.#run(task);
    const present = this.#tasks.get(slot) ?? task; // it may have become another one
    if (present.halfClosed) this.#table.halfClosed[slot] = 1;
    if (this.#io.wakeAtMs !== Infinity) this.#setAlarm(slot);
    if (outcome === WAITS) return;
    if (outcome === BACK) return this.#giveBack(slot);
    if (outcome !== MORE) return this.#end(slot, outcome === FAILED);
    present.queued = true;
    this.#queue.push(slot);
  }

  /** As a wire of the task has asked in its turn. */
  #setAlarm(slot: number): void {
    this.#alarms.set(slot, this.#io.wakeAtMs);
    this.#io.wakeAtMs = Infinity;
  }

  #wake(slot: number): void {
    const task = this.#tasks.get(slot);
    if (task !== null && !task.queued) this.#turn(slot, task);
  }

  #run(task: Task): Outcome {
    try {
      return task.run(this.#io);
    } catch (fault) {
      this.#onFault(fault);
      return FAILED;
    }
  }

  #takeTurns(): void {
    if (this.#queue.length === 0) return;
    const queue = this.#queue;
    this.#queue = [];
    for (const slot of queue) {
      const task = this.#tasks.get(slot);
      if (task === null || !task.queued) continue;
      task.queued = false;
      this.#turn(slot, task);
    }
  }

  #takeCommands(): void {
    for (let word = this.#table.nextCommand(); word >= 0; word = this.#table.nextCommand()) {
      const slot = Math.floor(word / COMMANDS);
      const command = word % COMMANDS;
      if (command >= codes.DIAL) this.#order(slot, command);
      else if (command === ADD) this.#add(slot);
      else if (command === RESET || command === CLOSE) this.#end(slot, command === RESET);
      else if (command === codes.OPEN_SESSION) this.#openSession(slot, this.#wires.take(slot * 2));
      else this.#change(slot, command);
    }
  }

  /** What the main thread says of listeners and of clients that were accepted here. */
  #order(slot: number, command: number): void {
    if (command === codes.LISTEN) this.#acceptor.listen(slot);
    else if (command === codes.UNLISTEN) this.#acceptor.unlisten(slot);
    else if (command === codes.RELEASE) {
      this.#acceptor.freeSlot(slot);
      this.#acceptor.tlsAccepted.taken(slot);
    } else if (command === codes.TAKE_VERSION) this.#acceptor.decider.takeVersion();
    else if (command === codes.JOIN) this.#acceptor.onJoined(slot);
    else if (command === codes.RENEWED) return; // that it was read is all
    else this.#orderClient(slot, command === codes.DIAL ? this.#takeWires(slot) : null);
  }

  /** That it is dialled, with these wires, or null: that the main thread has taken it. */
  #orderClient(slot: number, wires: WireMessages | null): void {
    const client = this.#tasks.get(slot);
    if (!(client instanceof PendingConnection)) return;
    if (wires === null) client.taken();
    else client.dial(wires);
  }

  #openSession(slot: number, message: WireMessage): void {
    const client = this.#tasks.get(slot);
    if (client instanceof PendingConnection) client.openSession(message);
  }

  #change(slot: number, command: number): void {
    const task = this.#tasks.get(slot);
    if (task === null) return;
    if (command >= GRANT) {
      const way = (command - GRANT) as FlowDirection;
      task.grant(way, float64At(this.#table.asked, slot * 2 + way));
    } else task.limit(command === LIMIT);
    if (!task.queued) this.#turn(slot, task);
  }

  #add(slot: number): void {
    const { descriptors } = this.#table;
    const [client, remote] = [int32At(descriptors, slot * 2), int32At(descriptors, slot * 2 + 1)];
    const task = this.#pair(slot, this.#takeWires(slot));
    if (task === null) return this.#close(slot, true);
    this.#tasks.set(slot, task);
    // What is ready already is the first event of each.
    const data = slot * 2 + CLIENT;
    if (!this.#watch(client, data) || !this.#watch(remote, data + 1)) this.#end(slot, true);
    else if (client < 0) this.onWire(data, READABLE);
  }

  /** A wire without a socket says by itself when it is ready. */
  #watch(fd: number, data: number): boolean {
    return fd < 0 || this.#calls.watch(this.#epoll, fd, data) >= 0;
  }

  #takeWires(slot: number): WireMessages {
    return [this.#wires.take(slot * 2), this.#wires.take(slot * 2 + 1)];
  }

  #pair(slot: number, [ofNear, ofFar]: WireMessages): Task | null {
    const near = this.#wires.open(slot * 2, ofNear);
    const far = this.#wires.open(slot * 2 + 1, ofFar);
    if (near === null || far === null) {
      if (near !== null) this.#drop(slot * 2, near);
      if (far !== null) this.#drop(slot * 2 + 1, far);
      return null;
    }
    const task = new RelayTask(near, far, slot);
    if (this.#table.limited[slot] === 1) task.limit(true);
    near.begin?.(this.#io);
    far.begin?.(this.#io);
    if (this.#io.wakeAtMs !== Infinity) this.#setAlarm(slot);
    return task;
  }

  #drop(index: number, wire: Wire): void {
    this.#wires.disown(index);
    wire.drop(this.#io);
  }

  /** A slot that has ended already is left alone: the command crossed the event. */
  #end(slot: number, isFault: boolean): void {
    const task = this.#tasks.get(slot);
    if (task === null) return;
    this.#tasks.set(slot, null);
    this.#alarms.clear(slot);
    // What the wires of a client are to hold that is not connected yet is the main thread's to free.
    if (!(task instanceof PendingConnection)) this.#disown(slot);
    this.#atSeam?.("freeing");
    task.drop(this.#io);
    this.#close(slot, isFault);
  }

  #disown(slot: number): void {
    this.#wires.disown(slot * 2);
    this.#wires.disown(slot * 2 + 1);
  }

  /** Both sockets stay open. */
  #giveBack(slot: number): void {
    this.#table.kinds[slot * 2] = this.#table.kinds[slot * 2 + 1] = LEFT_OPEN;
    this.#end(slot, false);
  }

  #close(slot: number, isFault: boolean): void {
    this.#release(slot * 2, isFault);
    this.#release(slot * 2 + 1, isFault);
    const { decider } = this.#acceptor;
    const account = decider.wayOf(slot) === null ? "joined" : decider.end(slot);
    if (account === "joined") this.#reportEnd(slot);
    else if (account === "unknown") this.#acceptor.freeSlot(slot);
  }

  /** Only a socket that was left open is waited for. */
  #reportEnd(slot: number): void {
    const { kinds } = this.#table;
    if (kinds[slot * 2] === LEFT_OPEN || kinds[slot * 2 + 1] === LEFT_OPEN) this.#events.report(slot, ENDED);
    else this.#events.reportLazily(slot, ENDED);
  }

  #release(index: number, isFault: boolean): void {
    const { descriptors, kinds } = this.#table;
    const fd = int32At(descriptors, index);
    if (fd < 0) return;
    if (kinds[index] === LEFT_OPEN) return this.#calls.unwatch(this.#epoll, fd);
    // First: its name must not be asked for any more, nor the number closed, which may be another's, should this worker
    // die.
    Atomics.store(descriptors, index, -1);
    this.#atSeam?.("closing");
    if (isFault) this.#calls.reset(fd);
    else this.#calls.close(fd);
  }
}
