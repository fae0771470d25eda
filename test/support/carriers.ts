/** The ways of moving bytes between the sides of a connection: what holds for one holds for the others. */
import assert from "node:assert/strict";
import { after } from "node:test";
import { openWorkerBackend, type WorkerBackend } from "#dataplane/workers/main/worker-backend.ts";
import type { RelayBackend } from "#dataplane/backend.ts";
import { tlsLibrary } from "./tls.ts";
import { openFfi } from "#platform/ffi.ts";

/** Takes what the threads can take from `afterBytes` on, and counts it. */
export class CountingCarrier implements RelayBackend {
  taken = 0;
  readonly afterBytes: number;
  readonly #backend: RelayBackend;

  constructor(backend: RelayBackend, afterBytes: number) {
    this.#backend = backend;
    this.afterBytes = afterBytes;
  }

  relay(...args: Parameters<RelayBackend["relay"]>): Promise<void> | null {
    const carried = this.#backend.relay(...args);
    if (carried !== null) this.taken++;
    return carried;
  }
}

/** Closed behind the last test of the file; null where this machine or runtime has no workers. */
export async function openThreads(threads: number): Promise<WorkerBackend | null> {
  if (process.platform !== "linux" || openFfi() === null) return null;
  const engine = await openWorkerBackend({
    tlsLibrary,
    threads,
    onDeath: (why) => assert.fail(`a worker died: ${why}`),
  });
  after(() => engine[Symbol.asyncDispose]());
  return engine;
}

export interface Path {
  readonly name: string;
  /** Null: the pump. */
  readonly backend: CountingCarrier | null;
}

/** Of one worker, which gets connections late; null: this machine or runtime has no workers. */
export async function lateWorker(): Promise<CountingCarrier | null> {
  return pathsOver(await openThreads(1)).find(({ backend }) => backend?.afterBytes === 1)?.backend ?? null;
}

/** For connections between plain sockets. */
export async function relayPaths(): Promise<readonly Path[]> {
  const engine = await openThreads(2);
  return [{ name: "portable", backend: null }, ...pathsOver(engine)];
}

/** At once, and late: by the pump at first, and then at the first moment at which nothing is under way. */
export function pathsOver(engine: WorkerBackend | null): readonly Path[] {
  if (engine === null) return [];
  return [
    { name: "engine", backend: new CountingCarrier(engine, 0) },
    { name: "handed over", backend: new CountingCarrier(engine, 1) },
  ];
}
