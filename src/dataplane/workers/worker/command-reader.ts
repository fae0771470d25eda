/** The commands of the main thread to one worker, each executed when it is read. */
import type { AcceptCalls } from "#platform/linux/accept-calls.ts";
import { READABLE } from "#platform/linux/relay-calls.ts";
import {
  ADD,
  CLOSE,
  COMMANDS,
  DIAL,
  GRANT,
  JOIN,
  LIMIT,
  LISTEN,
  OPEN_SESSION,
  RELEASE,
  RENEWED,
  RESET,
  TAKE_VERSION,
  UNLISTEN,
} from "#dataplane/workers/shared/opcodes.ts";
import type { RelayMemory } from "#dataplane/workers/shared/relay-memory.ts";
import { CLIENT, type FlowDirection } from "#dataplane/workers/shared/sides.ts";
import type { WireMessage } from "#dataplane/workers/shared/wire-spec.ts";
import type { Wires } from "#dataplane/workers/wire/open-wire.ts";
import { float64At, int32At } from "#lib/at.ts";
import type { Acceptor } from "./acceptor.ts";
import { PendingConnection } from "./pending-connection.ts";
import type { WireMessages } from "./pending-task.ts";
import type { TaskSlots } from "./task-slots.ts";
import type { Turns } from "./turns.ts";

export interface CommandReaderEnv {
  readonly calls: AcceptCalls;
  readonly table: RelayMemory;
  readonly wires: Wires;
  readonly tasks: TaskSlots;
  readonly turns: Turns;
  readonly acceptor: Acceptor;
}

export class CommandReader {
  readonly #calls: AcceptCalls;
  readonly #table: RelayMemory;
  readonly #wires: Wires;
  readonly #tasks: TaskSlots;
  readonly #turns: Turns;
  readonly #acceptor: Acceptor;

  constructor({ calls, table, wires, tasks, turns, acceptor }: CommandReaderEnv) {
    this.#calls = calls;
    this.#table = table;
    this.#wires = wires;
    this.#tasks = tasks;
    this.#turns = turns;
    this.#acceptor = acceptor;
  }

  /** All that wait. */
  takeAll(): void {
    for (let word = this.#table.nextCommand(); word >= 0; word = this.#table.nextCommand()) {
      const slot = Math.floor(word / COMMANDS);
      const command = word % COMMANDS;
      if (command >= DIAL) this.#order(slot, command);
      else if (command === ADD) this.#add(slot);
      else if (command === RESET || command === CLOSE) this.#tasks.end(slot, command === RESET);
      else if (command === OPEN_SESSION) this.#openSession(slot, this.#wires.take(slot * 2));
      else this.#change(slot, command);
    }
  }

  /** What the main thread says of listeners and of clients that were accepted here. */
  #order(slot: number, command: number): void {
    if (command === LISTEN) this.#acceptor.listen(slot);
    else if (command === UNLISTEN) this.#acceptor.unlisten(slot);
    else if (command === RELEASE) {
      this.#acceptor.freeSlot(slot);
      this.#acceptor.tlsAccepted.taken(slot);
    } else if (command === TAKE_VERSION) this.#acceptor.decider.takeVersion();
    else if (command === JOIN) this.#acceptor.onJoined(slot);
    else if (command === RENEWED) return; // that it was read is all
    else this.#orderClient(slot, command === DIAL ? this.#takeWires(slot) : null);
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
    if (!task.queued) this.#turns.take(slot, task);
  }

  #add(slot: number): void {
    const { descriptors } = this.#table;
    const [client, remote] = [int32At(descriptors, slot * 2), int32At(descriptors, slot * 2 + 1)];
    const task = this.#tasks.pair(slot, this.#takeWires(slot));
    if (task === null) return this.#tasks.close(slot, true);
    this.#tasks.set(slot, task);
    // What is ready already is the first event of each.
    const data = slot * 2 + CLIENT;
    if (!this.#watch(client, data) || !this.#watch(remote, data + 1)) this.#tasks.end(slot, true);
    else if (client < 0) this.#turns.enqueue(data, READABLE);
  }

  /** A wire without a socket says by itself when it is ready. */
  #watch(fd: number, data: number): boolean {
    return fd < 0 || this.#calls.watch(this.#table.epoll, fd, data) >= 0;
  }

  #takeWires(slot: number): WireMessages {
    return [this.#wires.take(slot * 2), this.#wires.take(slot * 2 + 1)];
  }
}
