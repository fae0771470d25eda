/** The program of a relay thread. It never returns to its event loop before it is told to stop. */
import { parentPort, workerData } from "node:worker_threads";
import { openRelayCalls } from "#platform/linux/relay-calls.ts";
import { Loop } from "./loop.ts";
import { SharedTable } from "./shared-table.ts";

export interface ThreadData {
  readonly table: SharedArrayBuffer;
  readonly pipes: number;
}

const { table, pipes } = workerData as ThreadData;
const calls = openRelayCalls();
if (calls === null || parentPort === null) throw new Error("a relay thread needs node:ffi");
const port = parentPort;
const loop = new Loop({ calls, table: new SharedTable(table), pipes, tell: () => port.postMessage("news") });
port.postMessage("ready");
loop.run();
