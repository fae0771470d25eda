import { MessageChannel, type MessagePort, type Worker } from "node:worker_threads";
import type { PendingBounds } from "#net/listen/pending-limiter.ts";
import type { RelayCalls } from "#platform/linux/relay-calls.ts";
import { openThread } from "#platform/thread.ts";
import { AcceptMemory, newAcceptMemory } from "#dataplane/workers/shared/accept-memory.ts";
import { newPipeMemory } from "#dataplane/workers/shared/pipe-memory.ts";
import { CAPACITY, newRelayMemory, RelayMemory } from "#dataplane/workers/shared/relay-memory.ts";
import type { ThreadData } from "#dataplane/workers/shared/worker-data.ts";

export interface StartWorkerOptions {
  readonly calls: RelayCalls;
  /** So many at most. */
  readonly pipes: number;
  /** Of its clients that have not authenticated yet. */
  readonly unauthenticated: PendingBounds;
  /** How many threads accept clients. */
  readonly threads: number;
  /** Of a `VersionWord`, for all workers. */
  readonly version: SharedArrayBuffer;
  /** The thread's end; absent: it is no thread of QUIC. */
  readonly quic?: MessagePort;
  /** For tests: how long its seams last, see seams.ts. */
  readonly seams?: SharedArrayBuffer | undefined;
}

/** A thread that is starting, and what it shares with the main thread. */
export interface StartedWorker {
  readonly worker: Worker;
  /** Both signals in it are the caller's to close. */
  readonly table: RelayMemory;
  readonly accepts: AcceptMemory;
  readonly pipes: SharedArrayBuffer;
  readonly messages: MessagePort;
  readonly decisions: MessagePort;
}

/** It keeps some hundred bytes for each connection, and makes next to no garbage. */
const RESOURCE_LIMITS = { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 256 };

/** It has the state of connections, and what waits on their streams. */
const QUIC_LIMITS = { maxYoungGenerationSizeMb: 16, maxOldGenerationSizeMb: 2048 };

const RELAY_PROGRAM = { from: import.meta.url, source: "../worker/main.ts", built: "relay-worker" };
const QUIC_PROGRAM = { from: import.meta.url, source: "../worker/quic-main.ts", built: "quic-worker" };

/** It does not keep the process alive. Throws where no descriptor is left for its signals. */
export function startWorker(options: StartWorkerOptions): StartedWorker {
  const { calls, pipes, unauthenticated, threads, version, quic, seams } = options;
  const memory = newRelayMemory();
  const accepts = newAcceptMemory(CAPACITY);
  const table = new RelayMemory(memory);
  openSignals(table, calls);
  const { port1, port2: messages } = new MessageChannel();
  const decisions = new MessageChannel();
  const pipeMemory = newPipeMemory(pipes);
  const workerData: ThreadData = {
    table: memory,
    accepts,
    pipes: pipeMemory,
    messages,
    decisions: decisions.port2,
    version,
    unauthenticated,
    threads,
    ...(quic === undefined ? {} : { quic }),
    seams,
  };
  const transferList = [messages, decisions.port2, ...(quic === undefined ? [] : [quic])];
  const worker =
    quic === undefined
      ? openThread(RELAY_PROGRAM, {
          workerData,
          transferList,
          resourceLimits: RESOURCE_LIMITS,
          name: "relay",
        })
      : openThread(QUIC_PROGRAM, { workerData, transferList, resourceLimits: QUIC_LIMITS, name: "quic" });
  worker.unref();
  const shared = { table, accepts: new AcceptMemory(accepts), pipes: pipeMemory };
  return { worker, ...shared, messages: port1, decisions: decisions.port1 };
}

function openSignals(table: RelayMemory, calls: RelayCalls): void {
  table.epoll = -1;
  table.signal = calls.openSignal();
  table.eventSignal = table.signal < 0 ? -1 : calls.openSignal();
  if (table.eventSignal >= 0) return;
  calls.close(table.signal);
  throw new Error("no descriptor is left for a worker");
}
