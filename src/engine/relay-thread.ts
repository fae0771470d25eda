/** The main thread's end of one relay thread. */
import { once } from "node:events";
import { MessageChannel, receiveMessageOnPort, type MessagePort, type Worker } from "node:worker_threads";
import type { Remains } from "#core/handover.ts";
import type { Direction } from "#core/meter.ts";
import { messageOf } from "#core/errors.ts";
import type { CrowdBounds } from "#net/crowd.ts";
import type { RelayCalls } from "#platform/linux/relay-calls.ts";
import { type Poller, type ReadinessWatch, UV_READABLE } from "#platform/linux/uv-poll.ts";
import { openThread } from "#platform/thread.ts";
import { Commands, type Teller } from "./commands.ts";
import { FrontTable, newFrontMemory } from "./front-table.ts";
import { closeOrphans, type Free, freeOrphans, orphanedFronts } from "./orphans.ts";
import { closeOrphanPipes, newPipeMemory } from "./pipes.ts";
import { PORT_WORDS, type PortPlan } from "./port.ts";
import type { ReturnedLetter } from "./ports.ts";
import { type AtSeam, atSeams } from "./seams.ts";
import * as codes from "./shared-table.ts";
import { ADD, ASKS, CAPACITY, ENDED, FRONT, newTableMemory, RETURNED, SharedTable } from "./shared-table.ts";
import { Slots } from "./slots.ts";
import { StandingBook } from "./standing-book.ts";
import type { ThreadData, ThreadMessage } from "./worker.ts";

/** Who is told of a conversation. */
export interface Carried {
  /** A direction has bytes that may not move without leave. */
  onAsked(direction: Direction): void;
  /** Says what has moved up to now. */
  look?(): void;
  /** Of a client that the thread has accepted: connected (null), or why not. */
  onDialled?(errno: number | null): void;
  /** Nothing is read or written any more, and the counts are final. */
  onEnded(): void;
}

export interface RelayThreadOptions {
  readonly calls: RelayCalls;
  /** Of the main thread. */
  readonly poller: Poller;
  /** So many at most. */
  readonly pipes: number;
  /** Of its clients that may still turn out to be nobody. */
  readonly newcomers: CrowdBounds;
  /** A client that the thread has accepted wants something. */
  readonly onArrived: (thread: RelayThread, slot: number, kind: number) => void;
  /** Nothing comes of that listener any more. */
  readonly onUnlistened: (thread: RelayThread, listener: number) => void;
  /** For what ports hold besides their sockets, where no thread frees it. */
  readonly free: Free;
  /** It died; its conversations have been reset, and it takes no more. */
  readonly onDeath: (why: string, thread: RelayThread) => void;
  /** For tests: how long its seams last, see seams.ts. */
  readonly seams?: SharedArrayBuffer | undefined;
}

/** It keeps some hundred bytes a conversation, and makes next to no garbage. */
const RESOURCE_LIMITS = { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 256 };

export class RelayThread implements AsyncDisposable {
  readonly table: SharedTable;
  /** By place: how much of its count the conversation's owner has been told of. Numbers in objects would weigh three times as much. */
  readonly told = new Float64Array(CAPACITY * 2);
  readonly front: FrontTable;
  readonly standing: StandingBook;
  /** Of the main thread. */
  readonly atSeam: AtSeam | undefined;
  readonly #options: RelayThreadOptions;
  readonly #worker: Worker;
  readonly #news: ReadinessWatch;
  readonly #letters: MessagePort;
  readonly #pipes: SharedArrayBuffer;
  readonly #carried = new Slots<Carried>();
  #next = 0;
  readonly #free: number[] = [];
  readonly #exited = Promise.withResolvers<void>();
  readonly #commands: Commands;
  #alive = false;
  #wasAlive = false;
  #why = "it ended by itself";
  #size = 0;
  /** Of those, clients that it has accepted. */
  #accepted = 0;
  #withdraws = false;
  /** Reasons besides conversations to keep the process alive. */
  #holds = 0;

  private constructor(options: RelayThreadOptions) {
    this.#options = options;
    const { newcomers, seams } = options;
    this.atSeam = seams === undefined ? undefined : atSeams(seams);
    const memory = newTableMemory();
    this.table = new SharedTable(memory);
    this.#commands = new Commands(this.table, options.calls);
    const front = newFrontMemory(CAPACITY);
    this.front = new FrontTable(front);
    this.standing = new StandingBook(this.table, this.front);
    this.table.epoll = -1;
    this.table.signal = options.calls.openSignal();
    this.table.newsSignal = this.table.signal < 0 ? -1 : options.calls.openSignal();
    if (this.table.newsSignal < 0) {
      options.calls.close(this.table.signal);
      throw new Error("no descriptor is left for a relay thread");
    }
    const { port1, port2: letters } = new MessageChannel();
    this.#letters = port1;
    this.#pipes = newPipeMemory(options.pipes);
    const workerData: ThreadData = { table: memory, front, pipes: this.#pipes, letters, newcomers, seams };
    this.#worker = openThread(import.meta.url, "relay-thread.mjs", {
      workerData,
      transferList: [letters],
      resourceLimits: RESOURCE_LIMITS,
      name: "relay",
    });
    this.#worker.unref();
    this.#news = options.poller.watchReadiness(this.table.newsSignal, () => {
      options.calls.clearSignal(this.table.newsSignal);
      this.takeNews();
    });
    this.#news.want(UV_READABLE);
    this.#news.hold(false);
    this.#worker.once("message", () => (this.#alive = this.#wasAlive = true));
    this.#worker.on("message", ({ fault }: ThreadMessage) => {
      if (fault !== undefined) throw fault; // it is heard of where faults of this thread are
    });
    this.#worker.on("error", (error) => {
      this.#alive = false; // it takes no more; what it has is touched when nothing of it runs any more
      this.#why = messageOf(error);
    });
    this.#worker.once("exit", () => {
      this.#gone();
      this.#exited.resolve();
    });
  }

  /** Throws where the thread cannot be started. */
  static async open(options: RelayThreadOptions): Promise<RelayThread> {
    const thread = new RelayThread(options);
    const ready = once(thread.#worker, "message").catch(() => {}); // `#why` has it
    thread.#worker.ref();
    await Promise.race([ready, thread.#exited.promise]);
    thread.#worker.unref();
    if (thread.#alive) return thread;
    await thread[Symbol.asyncDispose]();
    throw new Error(`it does not start: ${thread.#why}`);
  }

  get alive(): boolean {
    return this.#alive;
  }

  /** Conversations that it has now. */
  get size(): number {
    return this.#size;
  }

  get hasRoom(): boolean {
    return this.#alive && this.#size - this.#accepted < FRONT;
  }

  /** Both ports are the thread's from now on. Only where it has room; answers with the slot. */
  add(client: PortPlan, remote: PortPlan, isLimited: boolean, carried: Carried): number {
    const slot = this.#free.pop() ?? this.#next++;
    const { halfClosed, limited, counts } = this.table;
    this.#describe(slot * 2, client);
    this.#describe(slot * 2 + 1, remote);
    halfClosed[slot] = 0;
    limited[slot] = isLimited ? 1 : 0;
    counts[slot * 2] = counts[slot * 2 + 1] = 0;
    this.#carried.set(slot, carried);
    this.#size++;
    this.holdOn(1);
    this.command(slot, ADD);
    return slot;
  }

  /** Conversations and listeners keep the process alive, as sockets do. */
  holdOn(change: 1 | -1): void {
    this.#holds += change;
    if (this.#holds === 1 && change === 1) this.#worker.ref();
    else if (this.#holds === 0) this.#worker.unref();
  }

  /** A client that the thread has accepted. Null: nobody is told of it. */
  hold(slot: number, carried: Carried | null): void {
    this.#carried.set(slot, carried);
    this.#size++;
    this.#accepted++;
    this.holdOn(1);
  }

  /** The same client's news go to somebody else. */
  passOn(slot: number, carried: Carried): void {
    this.#carried.set(slot, carried);
  }

  /** A client that is nobody's of the thread any more. */
  forget(slot: number): void {
    this.#letGo(slot);
    this.#size--;
    this.#accepted--;
    this.holdOn(-1);
  }

  /**
   * Of a slot that the thread gave out, once nobody on this side looks at anything of it any more: as soon as the thread
   * hears of it, the slot may be somebody else's.
   */
  release(slot: number): void {
    this.#commands.tellAtLeisure(slot, codes.RELEASE);
    this.atSeam?.("released");
  }

  /** Of a place whose slot has just ended, in the order of the ends: a letter that nobody asked for is lost. Null: there are none. */
  takeRemains(place: number): Remains | null {
    if (this.table.letters[place] !== RETURNED) return null;
    for (;;) {
      const letter = receiveMessageOnPort(this.#letters)?.message as ReturnedLetter | undefined;
      if (letter === undefined || letter.place === place) return letter?.remains ?? null;
    }
  }

  #describe(place: number, { fd, kind, words, letter }: PortPlan): void {
    const { descriptors, kinds, letters, owned, portWords } = this.table;
    descriptors[place] = fd;
    kinds[place] = owned[place] = kind;
    for (const [at, word] of words.entries()) portWords[place * PORT_WORDS + at] = word;
    letters[place] = letter === null ? 0 : 1;
    if (letter !== null) this.#letters.postMessage(letter);
  }

  /** Nothing is told to one that has ended. Answers with the command's number, of which `teller` hears unless the thread ends before. */
  command(slot: number, command: number, teller: Teller | null = null): number {
    if (!this.#alive) return 0;
    const told = this.#commands.tell(slot, command, teller);
    this.atSeam?.("told");
    return told;
  }

  /** All that the thread has said up to now. A fault of ours in one conversation is heard of, and costs no other its news. */
  takeNews(): void {
    this.#commands.look();
    this.table.takeNews((slot, kind) => {
      try {
        this.#take(slot, kind);
      } catch (error) {
        setImmediate(() => {
          throw error;
        });
      }
    });
  }

  #take(slot: number, kind: number): void {
    this.atSeam?.("heard");
    if (kind === ENDED) this.#ended(slot);
    else if (kind < codes.REQUESTED) this.#carried.get(slot)?.onAsked(kind === ASKS ? "upload" : "download");
    else this.#heard(slot, kind);
  }

  #heard(slot: number, kind: number): void {
    if (kind === codes.UNLISTENED) this.#options.onUnlistened(this, slot);
    else if (kind === codes.FORGOTTEN) this.standing.forgotten(slot);
    else if (kind === codes.PASSED) this.#passed(slot);
    else if (kind === codes.STALE) this.hear();
    else if (kind === codes.DIALLED) this.#carried.get(slot)?.onDialled?.(null);
    else if (kind === codes.NOT_DIALLED)
      this.#carried.get(slot)?.onDialled?.(this.table.asked[slot * 2] as number);
    else this.#options.onArrived(this, slot, kind);
  }

  #passed(slot: number): void {
    try {
      this.standing.passed(slot);
    } finally {
      this.release(slot);
    }
  }

  /** Has every conversation say what has moved up to now. */
  look(): void {
    this.#carried.forEach((one) => one.look?.());
  }

  /** Whoever goes by a standing answer is known from now on. */
  hear(): void {
    this.standing.hear((slot, client) => {
      this.hold(slot, client);
      this.command(slot, codes.JOIN);
    });
  }

  /** Nobody comes by a standing answer any more. */
  withdraw(): void {
    if (this.standing.isEmpty) return;
    this.front.nextEpoch();
    this.#tellWithdrawn();
    this.hear();
  }

  /** So that it forgets them soon; once at a time, however often something changes. */
  #tellWithdrawn(): void {
    if (this.#withdraws) return;
    this.#withdraws = true;
    const { epoch } = this.front;
    const onObeyed = (): void => {
      this.#withdraws = false;
      if (epoch !== this.front.epoch) this.#tellWithdrawn();
    };
    this.command(0, codes.WITHDRAW, { onObeyed });
  }

  /** Whoever comes next to the slot goes unlimited where nobody says anything else, as by a standing answer. */
  #letGo(slot: number): void {
    this.#carried.set(slot, null);
    this.table.limited[slot] = 0;
  }

  /** The slot is given back last, whatever happens here: until then its counts, descriptors and objects are those of the one that has ended. */
  #ended(slot: number): void {
    const carried = this.#carried.get(slot);
    try {
      if (carried !== null) this.#settle(slot, carried); // else of a client of which nobody had heard
    } finally {
      if (slot < FRONT) this.#free.push(slot);
      else this.release(slot);
    }
  }

  #settle(slot: number, carried: Carried): void {
    this.#letGo(slot);
    freeOrphans(this.table, slot, this.#options.free);
    this.#size--;
    if (slot >= FRONT) this.#accepted--;
    this.holdOn(-1);
    carried.onEnded();
  }

  /** Nothing of the thread runs any more. What it had is reset: nobody else knows what is in its pipes. */
  #gone(): void {
    const { calls } = this.#options;
    this.#alive = false;
    this.takeNews();
    this.hear();
    this.#commands.forget();
    for (const slot of this.#carried.taken()) {
      closeOrphans(this.table, slot, (fd) => calls.reset(fd));
      this.#take(slot, ENDED);
    }
    // In a handshake, or taken: then the socket goes on by another descriptor, and must not be reset.
    for (const slot of orphanedFronts(this.table)) {
      freeOrphans(this.table, slot, this.#options.free);
      closeOrphans(this.table, slot, (fd) => calls.close(fd));
    }
    closeOrphanPipes(this.#pipes, (fd) => calls.close(fd));
    if (this.table.epoll >= 0) calls.close(this.table.epoll);
    this.standing.close();
    if (this.#wasAlive) this.#options.onDeath(this.#why, this);
  }

  /** It ends as soon as it hears of it; nothing is called any more. For the end of the process, which waits for it. */
  stop(): void {
    this.#news.want(0);
    this.#tellToStop();
  }

  #tellToStop(): void {
    this.table.stop();
    this.#options.calls.raiseSignal(this.table.signal);
  }

  /** Resets what it still has. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.table.signal < 0) return;
    this.#alive = this.#wasAlive = false;
    this.#tellToStop();
    this.#worker.ref();
    await this.#exited.promise;
    this.#letters.close();
    this.#news.close();
    this.#options.calls.close(this.table.newsSignal);
    this.#options.calls.close(this.table.signal);
    this.table.signal = -1;
  }
}
