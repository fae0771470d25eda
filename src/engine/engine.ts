/** Relay threads as a `Carrier`: conversations between two kernel sockets leave the event loop for good. */
import { availableParallelism } from "node:os";
import type { Duplex } from "node:stream";
import { descriptorOf, type Offer, offerOf, type WireKind } from "#core/handover.ts";
import type { HeldClient } from "#core/held.ts";
import type { Direction, Meter } from "#core/meter.ts";
import { openRelayCalls } from "#platform/linux/relay-calls.ts";
import type { RelayCalls } from "#platform/linux/relay-calls.ts";
import { openPoller, type Poller } from "#platform/linux/uv-poll.ts";
import type { Carrier, CarryOptions, End, FlowOwner, Pair, Patience, Resettable } from "#relay/carrier.ts";
import { CarriedFlow } from "./carried-flow.ts";
import type { Side } from "./conversation.ts";
import { MOST_ARRIVING } from "./front.ts";
import { Fronts } from "./fronts.ts";
import { freeOrphan } from "./orphans.ts";
import { HeldSocket } from "./held-socket.ts";
import { ANYTLS, PLAIN, SEALED, TLS, type PortKind, type PortPlan } from "./port.ts";
import { RelayThread, type RelayThreadOptions } from "./relay-thread.ts";
import { socketOf } from "./socket-of.ts";

export interface EngineOptions {
  /** Default: one a core. */
  readonly threads?: number;
  /** Bytes that a conversation moves before it is worth to be carried; default: those of one large read. */
  readonly afterBytes?: number;
  /** A thread has died. Its conversations are over; without threads every `carry` says no. */
  readonly onDeath: (why: string, threadsLeft: number) => void;
  /** For tests: how long the seams of its threads last, see seams.ts. */
  readonly seams?: SharedArrayBuffer | undefined;
}

/**
 * Of all threads together. An unprivileged user gets 64 pipes of this size from the system (pipe(7),
 * pipe-user-pages-soft); some are left to others.
 */
const PIPES = 56;

const AFTER_BYTES = 64 * 1024;

/** Whoever reads rows and totals one after the other shall not cause a walk each time. */
const FRESH_MS = 100;

const KINDS: Readonly<Record<WireKind, PortKind>> = {
  plain: PLAIN,
  tls: TLS,
  sealed: SEALED,
  anytls: ANYTLS,
};

/** Throws where this system cannot: the message says why. */
export async function openEngine(options: EngineOptions): Promise<Engine> {
  const calls = openRelayCalls();
  const poller = openPoller();
  if (calls === null || poller === null) {
    const what = process.platform === "linux" ? `${process.version} has no node:ffi` : process.platform;
    throw new Error(`needs Linux and a runtime with node:ffi, this is ${what}`);
  }
  const engine = new Engine(calls, poller, options);
  await using undo = new AsyncDisposableStack();
  undo.use(engine);
  await engine.start(options.threads ?? availableParallelism());
  undo.move();
  return engine;
}

export class Engine implements Carrier, AsyncDisposable {
  readonly afterBytes: number;
  readonly fronts: Fronts | null = Fronts.open(() => this.#threads);
  readonly #calls: RelayCalls;
  readonly #poller: Poller;
  readonly #options: EngineOptions;
  #threads: readonly RelayThread[] = [];
  #lookedAtMs = 0;
  /** Of all threads together. */
  #lookedAtTurns = -1;
  /** The process cannot end while a thread sits in a system call. */
  readonly #onExit = (): void => {
    for (const thread of this.#threads) thread.stop();
  };

  constructor(calls: RelayCalls, poller: Poller, options: EngineOptions) {
    this.#calls = calls;
    this.#poller = poller;
    this.#options = options;
    this.afterBytes = options.afterBytes ?? AFTER_BYTES;
  }

  /** Once, before anything else. */
  async start(count: number): Promise<void> {
    const options: RelayThreadOptions = {
      calls: this.#calls,
      poller: this.#poller,
      pipes: Math.floor(PIPES / count),
      newcomers: { count: MOST_ARRIVING.count / count, bytes: MOST_ARRIVING.bytes / count },
      free: freeOrphan,
      seams: this.#options.seams,
      onArrived: (thread, slot, kind) => this.fronts?.arrived(thread, slot, kind),
      onUnlistened: (thread, listener) => this.fronts?.closed(thread, listener),
      onDeath: (why, thread) => {
        this.#options.onDeath(why, this.threads);
        this.fronts?.died(thread);
      },
    };
    const opening = Array.from({ length: count }, () => RelayThread.open(options));
    const opened = await Promise.allSettled(opening);
    this.#threads = opened.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    process.once("exit", this.#onExit);
    for (const one of opened) if (one.status === "rejected") throw one.reason;
  }

  /** Those that are alive. */
  get threads(): number {
    return this.#threads.filter(({ alive }) => alive).length;
  }

  carry(pair: Pair, meter: Meter, options: CarryOptions): Promise<void> | null {
    const { client, remote } = pair;
    const thread = this.#leastBusy();
    if (thread === null || options.signal.aborted || mustWait(pair, meter) || cannotReturn(pair)) return null;
    const near = this.#descriptorOf(client);
    const far = near < 0 ? -1 : this.#descriptorOf(remote);
    if (far < 0) return this.#giveUp(client, near);
    deliver(client, remote, (bytes) => count(meter, options, "upload", bytes));
    deliver(remote, client, (bytes) => count(meter, options, "download", bytes));
    // What the kernel did not take at once stays with the streams, and so does the conversation.
    if (!canLeave(client) || !canLeave(remote)) {
      this.#giveUp(remote, far);
      return this.#giveUp(client, near);
    }
    return this.#start(thread, pair, [near, far], meter, options);
  }

  #start(
    thread: RelayThread,
    pair: Pair,
    [near, far]: readonly [number, number],
    meter: Meter,
    options: CarryOptions,
  ): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const { client, remote } = pair;
    const { onBytes, signal } = options;
    // Whoever waits for the end of thousands keeps no more of each than that needs.
    const goOn = client.offer.kind === "anytls" ? pair.goOn : undefined;
    const backs = [client.offer.takeBack, remote.offer.takeBack];
    const left = [huskOf(client), huskOf(remote)];
    const onGone = (): void => flow.reset();
    const onEnded = (): void => {
      signal.removeEventListener("abort", onGone);
      for (const stream of left) stream?.off("close", onGone);
      const socket = goOn === undefined ? null : socketOf(flow.takeSpared(1), this.#calls);
      if (socket === null) left[0]?.destroy();
      left[1]?.destroy();
      for (const [side, takeBack] of backs.entries())
        if (takeBack !== undefined) giveBack(flow, side as Side, takeBack);
      if (socket === null) resolve();
      else goOn?.(socket);
    };
    const flow = new CarriedFlow(thread, meter, options, { onBytes, onEnded });
    for (const stream of left) stream?.once("close", onGone);
    flow.start(depart(client, near), depart(remote, far));
    signal.addEventListener("abort", onGone);
    return promise;
  }

  goOn(held: HeldClient, meter: Meter, patience: Patience, owner: FlowOwner): Resettable {
    if (!(held instanceof HeldSocket)) throw new TypeError("a client of another engine");
    const flow = new CarriedFlow(held.thread, meter, patience, owner);
    held.carriedBy(flow);
    flow.join(held.slot);
    return flow;
  }

  /** Whoever threads serve by standing answers is known from now on. */
  hear(): void {
    for (const thread of this.#threads) thread.hear();
  }

  /** What standing answers rest on has changed: nobody comes by those that were given up to now. */
  withdraw(): void {
    for (const thread of this.#threads) thread.withdraw();
  }

  /** Has every conversation report what was counted up to now, or up to `maxAgeMs` ago. */
  look(maxAgeMs = FRESH_MS): void {
    const nowMs = performance.now();
    if (nowMs - this.#lookedAtMs < maxAgeMs) return;
    this.#lookedAtMs = nowMs;
    const turns = this.#threads.reduce((sum, { table }) => sum + table.turns, 0);
    if (turns === this.#lookedAtTurns) return; // no thread has done anything, nor taken anybody
    this.#lookedAtTurns = turns;
    this.hear();
    for (const thread of this.#threads) thread.look();
  }

  #leastBusy(): RelayThread | null {
    let best: RelayThread | null = null;
    for (const thread of this.#threads)
      if (thread.hasRoom && (best === null || thread.size < best.size)) best = thread;
    return best;
  }

  /** The thread's own; -1 where none is left. */
  #descriptorOf({ offer: { socket } }: End): number {
    return typeof socket === "number" ? socket : this.#calls.duplicate(descriptorOf(socket));
  }

  #giveUp({ offer: { socket } }: End, fd: number): null {
    if (fd >= 0 && typeof socket !== "number") this.#calls.close(fd);
    return null;
  }

  /** Resets the conversations that are left. */
  async [Symbol.asyncDispose](): Promise<void> {
    process.off("exit", this.#onExit);
    await Promise.all(this.#threads.map((thread) => thread[Symbol.asyncDispose]()));
  }
}

/** Bytes that were read already and perhaps must be held back are the pump's business. */
function mustWait({ client, remote }: Pair, meter: Meter): boolean {
  return meter.free !== true && client.stream.readableLength + remote.stream.readableLength > 0;
}

/** It may have to, as two sockets. */
function cannotReturn({ client, remote, goOn }: Pair): boolean {
  return client.offer.kind === "anytls" && (remote.offer.kind !== "plain" || goOn === undefined);
}

/** What was read already goes first. An end that was read shows again in the kernel's socket. */
function deliver(from: End, to: End, counted: (bytes: number) => void): void {
  from.stream.pause();
  for (let chunk = read(from.stream); chunk !== null; chunk = read(from.stream)) {
    counted(chunk.length);
    to.stream.write(chunk);
  }
}

function read(from: Duplex): Buffer | null {
  return from.readableLength > 0 ? (from.read() as Buffer | null) : null;
}

function canLeave({ stream }: End): boolean {
  return stream.readableLength === 0 && stream.writableLength === 0 && offerOf(stream) !== null;
}

/** A stream over the socket stays until the end, for those who want to end it: destroyed, it takes all with it. */
function huskOf({ stream, offer }: End): Duplex | null {
  return stream === offer.socket ? null : stream;
}

/** From the next turn of the event loop on nothing of the runtime reads the socket. */
function depart({ offer }: End, fd: number): PortPlan {
  const { words, letter } = offer.leave();
  if (typeof offer.socket !== "number") offer.socket.destroy();
  return { kind: KINDS[offer.kind], fd, words, letter };
}

function giveBack(flow: CarriedFlow, side: Side, takeBack: NonNullable<Offer["takeBack"]>): void {
  const fd = flow.takeSpared(side);
  const remains = flow.takeRemains(side);
  takeBack(fd, fd < 0 ? null : remains);
}

function count(meter: Meter, { onBytes }: CarryOptions, direction: Direction, bytes: number): void {
  onBytes(direction, bytes);
  meter.correct(direction, bytes);
}
