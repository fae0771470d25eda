/** The program of a relay thread. It never returns to its event loop before it is told to stop. */
import { parentPort, workerData, type MessagePort } from "node:worker_threads";
import type { CrowdBounds } from "#net/crowd.ts";
import { openAcceptCalls } from "#platform/linux/accept-calls.ts";
import { FrontTable } from "./front-table.ts";
import { Loop } from "./loop.ts";
import { Ports } from "./ports.ts";
import { atSeams } from "./seams.ts";
import { SharedTable } from "./shared-table.ts";

export interface ThreadData {
  readonly table: SharedArrayBuffer;
  readonly front: SharedArrayBuffer;
  readonly pipes: SharedArrayBuffer;
  /** Bytes that go with ports, in the order in which these are added. */
  readonly letters: MessagePort;
  /** Of clients that may still turn out to be nobody. */
  readonly newcomers: CrowdBounds;
  /** Of tests only; see seams.ts. */
  readonly seams: SharedArrayBuffer | undefined;
}

/** The first one says that it is ready. */
export interface ThreadMessage {
  /** Of ours, in one conversation. */
  readonly fault?: unknown;
}

const { table: memory, front: frontMemory, pipes, letters, newcomers, seams } = workerData as ThreadData;
const calls = openAcceptCalls();
if (calls === null || parentPort === null) throw new Error("a relay thread needs node:ffi");
const port = parentPort;
const table = new SharedTable(memory);
const ports = new Ports(table, letters, calls.buffer);
const front = new FrontTable(frontMemory);
front.onAlpn[0] = ports.ssl()?.onAlpn() ?? 0n;
const tell = (): void => calls.raiseSignal(table.newsSignal);
const onFault = (fault: unknown): void => port.postMessage({ fault } satisfies ThreadMessage);
const atSeam = seams === undefined ? undefined : atSeams(seams);
const loop = new Loop({ calls, table, front, pipes, ports, tell, onFault, newcomers, atSeam });
port.postMessage({} satisfies ThreadMessage);
loop.run();
