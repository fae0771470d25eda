/** The main thread's end of one worker. */
import type { WireRemainder } from "#core/wire-state.ts";
import { type Poller, type ReadinessWatch, UV_READABLE } from "#platform/linux/uv-poll.ts";
import { Commands, type CommandObserver } from "./commands.ts";
import type { AcceptMemory } from "#dataplane/workers/shared/accept-memory.ts";
import { closeOrphans, type Free, closeRest, freeOrphans } from "./orphans.ts";
import type { LeftClient } from "#dataplane/workers/shared/worker-data.ts";
import { PLAIN, type HandedWire, type WireSpec } from "#dataplane/workers/shared/wire-spec.ts";
import { type AtSeam, atSeams } from "#dataplane/workers/shared/seams.ts";
import type { RelayMemory } from "#dataplane/workers/shared/relay-memory.ts";
import { ADD, JOIN, RELEASE, TAKE_VERSION } from "#dataplane/workers/shared/opcodes.ts";
import { DecidedRows, type DecidedEnds, type JoinedClient } from "./decided-rows.ts";
import { startWorker, type StartWorkerOptions } from "./start-worker.ts";
import type { WorkerTaskOwner } from "./task-owner.ts";
import { TaskTable } from "./task-table.ts";
import { WireMessages } from "./wire-messages.ts";
import { WorkerEvents } from "./worker-events.ts";
import { WorkerThread } from "./worker-thread.ts";

export interface WorkerHandleOptions extends StartWorkerOptions {
  /** Of the main thread. */
  readonly poller: Poller;
  /** A client that the thread has accepted wants something. */
  readonly onArrived: (thread: WorkerHandle, slot: number, kind: number) => void;
  /** The connection object for a client that the worker has decided and connected. */
  readonly decidedClient: (thread: WorkerHandle, slot: number, ends: DecidedEnds) => JoinedClient;
  /** A client that the worker has decided has come and gone. */
  readonly onServed: (thread: WorkerHandle, slot: number) => void;
  /** That listener accepts no client any more. */
  readonly onUnlistened: (thread: WorkerHandle, listener: number) => void;
  /** Frees what a wire holds besides its socket, where no worker does. */
  readonly free: Free;
  /** It died; its connections have been reset, and it takes no more. */
  readonly onDeath: (why: string, thread: WorkerHandle) => void;
}

/**
 * Of the events of one worker in one turn of the event loop. A flood of clients makes them faster than a main thread without
 * CPU time takes them; they wait in the ring, and timers and sockets have their turn meanwhile.
 */
const TURN_MS = 10;
/** At the end of the process. */
const LONGEST_END_MS = 2_000;

export class WorkerHandle implements AsyncDisposable {
  readonly table: RelayMemory;
  /** By index: the part of its count that the connection's owner has been told. */
  readonly reported: Float64Array;
  readonly accepts: AcceptMemory;
  readonly decided: DecidedRows;
  /** Of the main thread. */
  readonly atSeam: AtSeam | undefined;
  readonly #options: WorkerHandleOptions;
  readonly #thread: WorkerThread;
  readonly #eventWatch: ReadinessWatch;
  readonly #wires: WireMessages;
  readonly #pipes: SharedArrayBuffer;
  readonly #tasks: TaskTable;
  readonly #commands: Commands;
  readonly #events: WorkerEvents;

  private constructor(options: WorkerHandleOptions) {
    this.#options = options;
    const { seams } = options;
    this.atSeam = seams === undefined ? undefined : atSeams(seams);
    const { worker, table, accepts, pipes, messages, decisions } = startWorker(options);
    this.#thread = new WorkerThread(worker, (why) => this.#onExit(why));
    this.table = table;
    this.accepts = accepts;
    this.#pipes = pipes;
    this.#wires = new WireMessages(table, messages);
    this.#commands = new Commands(table, options.calls);
    this.decided = new DecidedRows({
      table,
      accepts,
      port: decisions,
      command: (observer) => void this.command(0, TAKE_VERSION, observer),
      takeEvents: () => this.takeEvents(),
    });
    this.#tasks = new TaskTable(table, (change) => this.holdProcess(change));
    this.reported = this.#tasks.reported;
    this.#events = this.#openEvents(options);
    this.#eventWatch = options.poller.watchReadiness(this.table.eventSignal, () => this.#onSignal());
    this.#eventWatch.want(UV_READABLE);
    this.#eventWatch.hold(false);
  }

  #openEvents(options: WorkerHandleOptions): WorkerEvents {
    return new WorkerEvents({
      table: this.table,
      tasks: this.#tasks,
      free: options.free,
      release: (slot) => this.release(slot),
      onArrived: (slot, kind) => options.onArrived(this, slot, kind),
      onServed: (slot) => {
        this.decided.onServed(slot);
        options.onServed(this, slot);
      },
      onUnlistened: (listener) => options.onUnlistened(this, listener),
      atSeam: this.atSeam,
    });
  }

  /** Throws where the thread cannot be started. */
  static async open(options: WorkerHandleOptions): Promise<WorkerHandle> {
    const thread = new WorkerHandle(options);
    await thread.#thread.started();
    if (thread.alive) return thread;
    await thread[Symbol.asyncDispose]();
    throw new Error(`it does not start: ${thread.#thread.why}`);
  }

  get alive(): boolean {
    return this.#thread.alive;
  }

  /** Number of its connections. */
  get size(): number {
    return this.#tasks.size;
  }

  get hasRoom(): boolean {
    return this.alive && this.#tasks.hasRoom;
  }

  /** Both descriptors are the worker's from now on. Only where it has room. Returns the slot. */
  add(client: HandedWire, remote: HandedWire, isLimited: boolean, owner: WorkerTaskOwner): number {
    const slot = this.#tasks.takeSlot();
    const { descriptors, halfClosed, limited, counts } = this.table;
    descriptors[slot * 2] = client.fd;
    descriptors[slot * 2 + 1] = remote.fd;
    this.#wires.describe(slot * 2, client);
    this.#wires.describe(slot * 2 + 1, remote);
    halfClosed[slot] = 0;
    limited[slot] = isLimited ? 1 : 0;
    counts[slot * 2] = counts[slot * 2 + 1] = 0;
    this.#tasks.enter(slot, owner);
    this.command(slot, ADD);
    return slot;
  }

  /** What is to lie over a socket that the worker has, or is about to open. The command that follows has it read that. */
  describe(index: number, wire: WireSpec): void {
    this.#wires.describe(index, wire);
  }

  /** The same of what is no wire. */
  post(message: unknown): void {
    this.#wires.post(message);
  }

  /** That was described, and comes to nothing. */
  forgetWires(slot: number): void {
    freeOrphans(this.table, slot, this.#options.free);
    this.table.kinds[slot * 2] = this.table.kinds[slot * 2 + 1] = PLAIN;
    this.table.messageStates[slot * 2] = this.table.messageStates[slot * 2 + 1] = 0;
  }

  /** Connections and listeners keep the process alive, as sockets do. */
  holdProcess(change: 1 | -1): void {
    this.#thread.hold(change);
  }

  /** Registers a client that the worker has accepted. Null: it has no observer. */
  track(slot: number, owner: WorkerTaskOwner | null): void {
    this.#tasks.enter(slot, owner);
  }

  /** The client's events go to another owner. */
  handOver(slot: number, owner: WorkerTaskOwner): void {
    this.#tasks.handOver(slot, owner);
  }

  /** Null: none. */
  ownerOf(slot: number): WorkerTaskOwner | null {
    return this.#tasks.get(slot);
  }

  /** Forgets a client that has left the worker. */
  untrack(slot: number): void {
    this.#tasks.leave(slot);
  }

  /**
   * For a slot that the worker gave out, after the last access to anything of it on this side: as soon as the worker
   * executes it, the slot may belong to another client.
   */
  release(slot: number): void {
    this.#commands.postLazily(slot, RELEASE);
    this.atSeam?.("released");
  }

  /** As `WireMessages.takeRemainder` says. */
  takeRemainder(index: number): WireRemainder | null {
    return this.#wires.takeRemainder(index);
  }

  /** As `WireMessages.takeLeft` says. */
  takeLeft(index: number): LeftClient | null {
    return this.#wires.takeLeft(index);
  }

  /**
   * Does nothing for a worker that has ended. Returns the command's number, with which the observer is called unless
   * the worker ends before.
   */
  command(slot: number, command: number, observer: CommandObserver | null = null): number {
    if (!this.alive) return 0;
    const reported = this.#commands.post(slot, command, observer);
    this.atSeam?.("commanded");
    return reported;
  }

  /** All that the worker has reported up to now. A fault of ours in one connection is thrown elsewhere, and costs no other its events. */
  takeEvents(): void {
    this.#takeEvents();
  }

  /** As `WorkerEvents.takeAll` says. */
  #takeEvents(goesOn?: () => boolean): boolean {
    this.#commands.look();
    const isDone = this.#events.takeAll(goesOn);
    if (isDone) this.decided.settle();
    return isDone;
  }

  #onSignal(): void {
    const { calls } = this.#options;
    calls.clearSignal(this.table.eventSignal);
    const endsAtMs = performance.now() + TURN_MS;
    const isDone = this.#takeEvents(() => performance.now() < endsAtMs);
    if (!isDone) calls.raiseSignal(this.table.eventSignal); // behind what else the event loop has to do
  }

  /** Has every connection report its counts up to now. */
  look(): void {
    this.#tasks.forEach((one) => one.look?.());
  }

  /** Connections that the worker has decided are known from now on. */
  joinDecided(): void {
    this.decided.join((slot, ends) => {
      const client = this.#options.decidedClient(this, slot, ends);
      this.track(slot, client);
      this.command(slot, JOIN);
      return client;
    });
  }

  /** `why`: where its end was not asked for. Its connections are reset: the bytes in its pipes are lost. */
  #onExit(why: string | null): void {
    const { calls } = this.#options;
    this.takeEvents();
    this.joinDecided();
    this.#commands.forget();
    for (const slot of this.#tasks.taken()) {
      closeOrphans(this.table, slot, (fd) => calls.reset(fd));
      this.#events.end(slot);
    }
    closeRest(this.table, this.#pipes, { calls, free: this.#options.free });
    this.decided.close();
    if (why !== null) this.#options.onDeath(why, this);
  }

  /**
   * It ends when it reads the command; no observer is called any more. For the end of the process, which waits for it.
   */
  stop(): void {
    this.#eventWatch.want(0);
    this.#postStop();
  }

  /**
   * The same for a thread with an event loop, and blocks until it has ended: what libuv watches for it would be still watched
   * when the runtime takes its loop down, which aborts the process.
   */
  stopAndWait(): void {
    if (!this.alive) return;
    this.stop();
    this.table.awaitGone(LONGEST_END_MS);
  }

  #postStop(): void {
    this.table.stop();
    this.#options.calls.raiseSignal(this.table.signal);
  }

  /** Resets what it still has. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.table.signal < 0) return;
    this.#postStop();
    await this.#thread.ended();
    this.#wires.close();
    this.#eventWatch.close();
    this.#options.calls.close(this.table.eventSignal);
    this.#options.calls.close(this.table.signal);
    this.table.signal = -1;
  }
}
