/** Relay threads as a `Carrier`: conversations between two kernel sockets leave the event loop for good. */
import { availableParallelism } from "node:os";
import type { Socket } from "node:net";
import type { Direction, Meter } from "#core/meter.ts";
import { openRelayCalls } from "#platform/linux/relay-calls.ts";
import type { RelayCalls } from "#platform/linux/relay-calls.ts";
import type { Carrier, CarryOptions, PlainPair } from "#relay/carrier.ts";
import { CarriedFlow } from "./carried-flow.ts";
import { PLAIN, type PortPlan } from "./port.ts";
import { RelayThread } from "./relay-thread.ts";

export interface EngineOptions {
  /** Default: one a core. */
  readonly threads?: number;
  /** Bytes that a conversation moves before it is worth to be carried; default: those of one large read. */
  readonly afterBytes?: number;
  /** A thread has died. Its conversations are over; without threads every `carry` says no. */
  readonly onDeath: (why: string, threadsLeft: number) => void;
}

/**
 * Of all threads together. An unprivileged user gets 64 pipes of this size from the system (pipe(7),
 * pipe-user-pages-soft); some are left to others.
 */
const PIPES = 56;

const AFTER_BYTES = 64 * 1024;

/** Whoever reads rows and totals one after the other shall not cause a walk each time. */
const FRESH_MS = 100;

/** What an open socket of the runtime keeps below. */
interface Handle {
  readonly fd: number;
}

/** Throws where this system cannot: the message says why. */
export async function openEngine(options: EngineOptions): Promise<Engine> {
  const calls = openRelayCalls();
  if (calls === null) {
    const what = process.platform === "linux" ? `${process.version} has no node:ffi` : process.platform;
    throw new Error(`needs Linux and a runtime with node:ffi, this is ${what}`);
  }
  const engine = new Engine(calls, options);
  await using undo = new AsyncDisposableStack();
  undo.use(engine);
  await engine.start(options.threads ?? availableParallelism());
  undo.move();
  return engine;
}

export class Engine implements Carrier, AsyncDisposable {
  readonly afterBytes: number;
  readonly #calls: RelayCalls;
  readonly #options: EngineOptions;
  #threads: readonly RelayThread[] = [];
  readonly #flows = new Set<CarriedFlow>();
  #lookedAtMs = 0;

  constructor(calls: RelayCalls, options: EngineOptions) {
    this.#calls = calls;
    this.#options = options;
    this.afterBytes = options.afterBytes ?? AFTER_BYTES;
  }

  /** Once, before anything else. */
  async start(count: number): Promise<void> {
    const onDeath = (why: string): void => this.#options.onDeath(why, this.threads);
    const pipes = Math.floor(PIPES / count);
    const opening = Array.from({ length: count }, () =>
      RelayThread.open({ calls: this.#calls, pipes, onDeath }),
    );
    const opened = await Promise.allSettled(opening);
    this.#threads = opened.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    for (const one of opened) if (one.status === "rejected") throw one.reason;
  }

  /** Those that are alive. */
  get threads(): number {
    return this.#threads.filter(({ alive }) => alive).length;
  }

  carry(pair: PlainPair, meter: Meter, options: CarryOptions): Promise<void> | null {
    const { client, remote } = pair;
    const thread = this.#leastBusy();
    if (thread === null || options.signal.aborted || mustWait(pair, meter)) return null;
    if (!canLeave(client) || !canLeave(remote)) return null;
    const near = this.#duplicate(client);
    const far = near < 0 ? -1 : this.#duplicate(remote);
    if (far < 0) return this.#giveUp(near);
    deliver(client, remote, (bytes) => count(meter, options, "upload", bytes));
    deliver(remote, client, (bytes) => count(meter, options, "download", bytes));
    // What the kernel did not take at once stays with the streams, and so does the conversation.
    if (client.writableLength > 0 || remote.writableLength > 0) {
      this.#calls.close(far);
      return this.#giveUp(near);
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    const flow = new CarriedFlow(thread, meter, options, () => {
      this.#flows.delete(flow);
      resolve();
    });
    this.#flows.add(flow);
    // Closed here and now: from the next turn of the event loop on nothing of the runtime reads these sockets.
    client.destroy();
    remote.destroy();
    flow.start(plainPort(near), plainPort(far));
    return promise;
  }

  /** Has every conversation report what was counted up to now, a moment ago at most. */
  look(): void {
    const nowMs = performance.now();
    if (nowMs - this.#lookedAtMs < FRESH_MS) return;
    this.#lookedAtMs = nowMs;
    for (const flow of this.#flows) flow.look();
  }

  #leastBusy(): RelayThread | null {
    let best: RelayThread | null = null;
    for (const thread of this.#threads)
      if (thread.hasRoom && (best === null || thread.size < best.size)) best = thread;
    return best;
  }

  #duplicate(socket: Socket): number {
    return this.#calls.duplicate((socket as unknown as { _handle: Handle })._handle.fd);
  }

  #giveUp(fd: number): null {
    if (fd >= 0) this.#calls.close(fd);
    return null;
  }

  /** Resets the conversations that are left. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread[Symbol.asyncDispose]()));
  }
}

function plainPort(fd: number): PortPlan {
  return { kind: PLAIN, fd, words: [], letter: null };
}

/** Bytes that were read already and must be held back are the pump's business. */
function mustWait({ client, remote }: PlainPair, meter: Meter): boolean {
  if (meter.free === true) return false;
  return (
    (client.readableLength > 0 && meter.charge("upload", 0) > 0) ||
    (remote.readableLength > 0 && meter.charge("download", 0) > 0)
  );
}

/** Is nothing under way that the runtime alone could finish? */
function canLeave(socket: Socket): boolean {
  const handle = (socket as unknown as { _handle: Handle | null })._handle;
  if (socket.destroyed || socket.connecting || socket.writableEnded || socket.writableLength > 0)
    return false;
  return handle !== null && handle.fd >= 0 && socket.remoteFamily !== undefined;
}

/** What was read already goes first. An end that was read shows again in the kernel's socket. */
function deliver(from: Socket, to: Socket, counted: (bytes: number) => void): void {
  from.pause();
  for (let chunk = read(from); chunk !== null; chunk = read(from)) {
    counted(chunk.length);
    to.write(chunk);
  }
}

function read(from: Socket): Buffer | null {
  return from.readableLength > 0 ? (from.read() as Buffer | null) : null;
}

/** What it has to wait for it owes, and pays with what comes next. */
function count(meter: Meter, { onBytes }: CarryOptions, direction: Direction, bytes: number): void {
  onBytes(direction, bytes);
  meter.charge(direction, bytes);
}
