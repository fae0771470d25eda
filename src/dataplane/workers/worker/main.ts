/** The program of a worker. It never returns to its event loop before it is told to stop. */
import { parentPort, workerData } from "node:worker_threads";
import type { ThreadData, ThreadMessage } from "#dataplane/workers/shared/worker-data.ts";
import { openWholeCollection } from "#platform/collection.ts";
import { openAcceptCalls } from "#platform/linux/accept-calls.ts";
import { AcceptMemory } from "#dataplane/workers/shared/accept-memory.ts";
import { VersionWord } from "#dataplane/workers/shared/decision-data.ts";
import { Loop } from "./loop.ts";
import { Wires } from "#dataplane/workers/wire/open-wire.ts";
import { atSeams } from "#dataplane/workers/shared/seams.ts";
import { RelayMemory } from "#dataplane/workers/shared/relay-memory.ts";

const {
  table: memory,
  accepts: acceptMemory,
  pipes,
  messages,
  decisions,
  version: versionMemory,
  unauthenticated,
  threads,
  seams,
}: ThreadData = workerData;
const calls = openAcceptCalls();
if (calls === null || parentPort === null) throw new Error("a worker needs node:ffi");
const port = parentPort;
const table = new RelayMemory(memory);
const wires = new Wires(table, messages, calls.buffer);
const acceptor = new AcceptMemory(acceptMemory);
acceptor.onAlpn[0] = wires.ssl()?.onAlpn() ?? 0n;
const post = (): void => calls.raiseSignal(table.eventSignal);
const onFault = (fault: unknown): void => port.postMessage({ fault } satisfies ThreadMessage);
const atSeam = seams === undefined ? undefined : atSeams(seams);
const version = new VersionWord(versionMemory);
const shared = { calls, table, acceptor, pipes, wires, decisions, version };
const collect = openWholeCollection();
const loop = new Loop({ ...shared, post, onFault, unauthenticated, threads, collect, atSeam });
port.postMessage({} satisfies ThreadMessage);
loop.run();
