/** The life of a relay thread: one blocking epoll loop. */
import { performance } from "node:perf_hooks";
import type { PendingBounds } from "#net/listen/pending-limiter.ts";
import type { AcceptCalls } from "#platform/linux/accept-calls.ts";
import { PendingConnection } from "./pending-connection.ts";
import { BACK, FAILED, MORE, WAITS } from "./task.ts";
import { CLIENT } from "#dataplane/workers/shared/sides.ts";
import type { Task, TaskIo, Outcome } from "./task.ts";
import type { Side, FlowDirection } from "#dataplane/workers/shared/sides.ts";
import type { AcceptMemory } from "#dataplane/workers/shared/accept-memory.ts";
import { Acceptor, LISTENER_DATA } from "./acceptor.ts";
import { Pipes } from "./pipes.ts";
import { LEFT_OPEN } from "#dataplane/workers/shared/wire-spec.ts";
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
/** News that can wait waits so long at most. */
const LAZY_MS = 20;

export interface LoopOptions {
  readonly calls: AcceptCalls;
  readonly table: RelayMemory;
  readonly front: AcceptMemory;
  /** For the pipes that this thread may hold. */
  readonly pipes: SharedArrayBuffer;
  readonly ports: Wires;
  /** Wakes the main thread: there is news. */
  readonly tell: () => void;
  /** A fault of ours, which costs the conversation in which it happened. */
  readonly onFault: (fault: unknown) => void;
  /** Of clients that may still turn out to be nobody. */
  readonly unauthenticated: PendingBounds;
  /** Of tests only. */
  readonly atSeam?: AtSeam | undefined;
}

export class Loop {
  readonly #calls: AcceptCalls;
  readonly #table: RelayMemory;
  readonly #ports: Wires;
  readonly #tell: () => void;
  readonly #onFault: (fault: unknown) => void;
  readonly #atSeam: AtSeam | undefined;
  readonly #io: TaskIo;
  readonly #epoll: number;
  readonly #acceptor: Acceptor;
  readonly #tasks = new Slots<Task>();
  /** Slots of conversations with more to do than one turn allows. */
  #queue: number[] = [];
  #hasEvents = false;
  /** Since when there is news that can wait; 0: there is none. */
  #waitsSinceMs = 0;
  #sleepMs = LONGEST_SLEEP_MS;

  constructor({ calls, table, front, pipes, ports, tell, onFault, unauthenticated, atSeam }: LoopOptions) {
    this.#calls = calls;
    this.#table = table;
    this.#ports = ports;
    this.#tell = tell;
    this.#onFault = onFault;
    this.#atSeam = atSeam;
    const ask = (place: number, bytes: number): void => {
      table.asked[place] = bytes;
      this.#report(place >>> 1, GRANT_WANTED + (place & 1));
    };
    this.#io = { calls, pipes: new Pipes(calls, pipes), counts: table.counts, ask, bufferedBytes: 0 };
    this.#epoll = table.epoll = calls.openEpoll();
    if (this.#epoll < 0 || calls.watch(this.#epoll, table.signal, SIGNAL) < 0)
      throw new Error("a relay thread cannot watch its signal");
    this.#acceptor = new Acceptor(
      calls,
      table,
      front,
      {
        epoll: this.#epoll,
        watch: (slot, fd, side) => calls.watch(this.#epoll, fd, slot * 2 + side) >= 0,
        put: (slot, conversation) => this.#tasks.set(slot, conversation),
        end: (slot, isFault) => this.#end(slot, isFault),
        report: (slot, kind) => this.#report(slot, kind),
        reportLazily: (slot, kind) => this.#reportLazily(slot, kind),
        pair: (slot) => this.#pair(slot),
        ssl: () => ports.ssl(),
        atSeam,
      },
      unauthenticated,
    );
  }

  /** Blocks until the main thread says stop; every conversation left is reset. */
  run(): void {
    while (!this.#table.stopped) {
      const mayWait = this.#queue.length === 0 && this.#table.fallAsleep();
      const count = this.#calls.wait(this.#epoll, mayWait ? this.#sleepMs : 0);
      this.#table.wakeUp();
      if (count === 0 && mayWait) this.#io.pipes.closeIdle();
      for (let at = 0; at < count; at++) this.#onEvent(this.#calls.dataAt(at), this.#calls.eventsAt(at));
      this.#takeCommands();
      this.#takeTurns();
      if (count > 0 || !mayWait) this.#table.endTurn();
      this.#sleepMs = this.#acceptor.tick(LONGEST_SLEEP_MS);
      this.#signalEvents();
    }
    for (const slot of this.#tasks.taken()) this.#end(slot, true);
    this.#io.pipes.closeIdle();
    this.#table.epoll = -1;
    this.#calls.close(this.#epoll);
    this.#tell();
  }

  #signalEvents(): void {
    if (!this.#hasEvents && this.#waitsSinceMs > 0) {
      const leftMs = this.#waitsSinceMs + LAZY_MS - performance.now();
      if (leftMs > 0) this.#sleepMs = Math.min(this.#sleepMs, Math.ceil(leftMs));
      else this.#hasEvents = true;
    }
    if (!this.#hasEvents) return;
    this.#hasEvents = false;
    this.#waitsSinceMs = 0;
    if (this.#table.mustSignal()) this.#tell();
  }

  #onEvent(data: number, events: number): void {
    if (data === SIGNAL) return; // edge-triggered: it need not be cleared
    if (data >= LISTENER_DATA) return this.#acceptor.accept(data - LISTENER_DATA);
    const slot = data >>> 1;
    const conversation = this.#tasks.get(slot); // it may have ended earlier in this batch
    if (conversation === null) return;
    const isNews = conversation.onEvents((data & 1) as Side, events);
    if (isNews && !conversation.queued) this.#turn(slot, conversation);
  }

  #turn(slot: number, conversation: Task): void {
    const outcome = this.#run(conversation);
    const present = this.#tasks.get(slot) ?? conversation; // it may have become another one
    if (present.halfClosed) this.#table.halfClosed[slot] = 1;
    if (outcome === WAITS) return;
    if (outcome === BACK) return this.#giveBack(slot);
    if (outcome !== MORE) return this.#end(slot, outcome === FAILED);
    present.queued = true;
    this.#queue.push(slot);
  }

  #run(conversation: Task): Outcome {
    try {
      return conversation.run(this.#io);
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
      const conversation = this.#tasks.get(slot);
      if (conversation === null || !conversation.queued) continue;
      conversation.queued = false;
      this.#turn(slot, conversation);
    }
  }

  #takeCommands(): void {
    for (let word = this.#table.nextCommand(); word >= 0; word = this.#table.nextCommand()) {
      const slot = Math.floor(word / COMMANDS);
      const command = word % COMMANDS;
      if (command >= codes.DIAL) this.#order(slot, command);
      else if (command === ADD) this.#add(slot);
      else if (command === RESET || command === CLOSE) this.#end(slot, command === RESET);
      else this.#change(slot, command);
    }
  }

  /** What the main thread says of listeners and of clients that were accepted here. */
  #order(slot: number, command: number): void {
    if (command === codes.LISTEN) this.#acceptor.listen(slot);
    else if (command === codes.UNLISTEN) this.#acceptor.unlisten(slot);
    else if (command === codes.RELEASE) this.#acceptor.freeSlot(slot);
    else if (command === codes.INVALIDATE) this.#acceptor.routes.withdraw();
    else if (command === codes.JOIN) this.#acceptor.onJoined(slot);
    else if (command === codes.RENEWED) return; // that it was read is all
    else {
      const client = this.#tasks.get(slot);
      if (!(client instanceof PendingConnection)) return;
      if (command === codes.DIAL) client.dial();
      else client.taken();
    }
  }

  #change(slot: number, command: number): void {
    const conversation = this.#tasks.get(slot);
    if (conversation === null) return;
    if (command >= GRANT) {
      const way = (command - GRANT) as FlowDirection;
      conversation.grant(way, float64At(this.#table.asked, slot * 2 + way));
    } else conversation.limit(command === LIMIT);
    if (!conversation.queued) this.#turn(slot, conversation);
  }

  #add(slot: number): void {
    const { descriptors } = this.#table;
    const [client, remote] = [int32At(descriptors, slot * 2), int32At(descriptors, slot * 2 + 1)];
    const conversation = this.#pair(slot);
    if (conversation === null) return this.#close(slot, true);
    this.#tasks.set(slot, conversation);
    // What is ready already is the first event of each.
    const data = slot * 2 + CLIENT;
    if (
      this.#calls.watch(this.#epoll, client, data) < 0 ||
      this.#calls.watch(this.#epoll, remote, data + 1) < 0
    )
      this.#end(slot, true);
  }

  #pair(slot: number): Task | null {
    const near = this.#ports.open(slot * 2);
    const far = this.#ports.open(slot * 2 + 1);
    if (near === null || far === null) {
      if (near !== null) this.#drop(slot * 2, near);
      if (far !== null) this.#drop(slot * 2 + 1, far);
      return null;
    }
    const conversation = new RelayTask(near, far, slot);
    if (this.#table.limited[slot] === 1) conversation.limit(true);
    return conversation;
  }

  #drop(place: number, port: Wire): void {
    this.#ports.disown(place);
    port.drop(this.#io);
  }

  /** A slot that has ended already is left alone: the command crossed the news. */
  #end(slot: number, isFault: boolean): void {
    const conversation = this.#tasks.get(slot);
    if (conversation === null) return;
    this.#tasks.set(slot, null);
    this.#ports.disown(slot * 2);
    this.#ports.disown(slot * 2 + 1);
    this.#atSeam?.("freeing");
    conversation.drop(this.#io);
    this.#close(slot, isFault);
  }

  /** Both sockets stay open. */
  #giveBack(slot: number): void {
    this.#table.kinds[slot * 2] = this.#table.kinds[slot * 2 + 1] = LEFT_OPEN;
    this.#end(slot, false);
  }

  #close(slot: number, isFault: boolean): void {
    this.#release(slot * 2, isFault);
    this.#release(slot * 2 + 1, isFault);
    const { routes: standing } = this.#acceptor;
    const known = standing.has(slot) ? standing.end(slot) : "known";
    if (known === "known") this.#report(slot, ENDED);
    else if (known === "unknown") this.#acceptor.freeSlot(slot);
  }

  #report(slot: number, kind: number): void {
    this.#table.report(slot, kind);
    this.#hasEvents = true;
    this.#atSeam?.("reported");
  }

  #reportLazily(slot: number, kind: number): void {
    this.#table.report(slot, kind);
    if (this.#waitsSinceMs === 0) this.#waitsSinceMs = performance.now();
    this.#atSeam?.("reported");
  }

  #release(place: number, isFault: boolean): void {
    const { descriptors, kinds } = this.#table;
    const fd = int32At(descriptors, place);
    if (fd < 0) return;
    if (kinds[place] === LEFT_OPEN) return this.#calls.unwatch(this.#epoll, fd);
    // First: nobody asks for its name any more, nor closes what may be another's by then, should this thread die.
    Atomics.store(descriptors, place, -1);
    this.#atSeam?.("closing");
    if (isFault) this.#calls.reset(fd);
    else this.#calls.close(fd);
  }
}
