/**
 * The server with REALITY and the plain relay beside it in a process of their own: dest is another machine in life, and is not
 * kept waiting by what its imitator computes.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { openThreadedReality, privateKey } from "../reality.ts";
import { openPlainRelay } from "./dest.ts";

const PROGRAM = fileURLToPath(import.meta.url);
const HOUR_MS = 3600_000;

interface Task {
  /** Port of dest. */
  readonly dest: number;
  readonly privateKey: string;
}

/** Ports of both. */
export interface RealityWays {
  readonly server: number;
  readonly relay: number;
}

async function open(task: Task): Promise<RealityWays> {
  const more = { "max-time-difference": HOUR_MS, "private-key": task.privateKey };
  const server = await openThreadedReality({ dest: task.dest, more });
  const relay = await openPlainRelay(task.dest);
  return { server: server.port, relay: relay.port };
}

/** Both, in front of a dest on this port; they end with the process. The keys are those of this one. */
export async function forkReality(dest: number): Promise<RealityWays & { readonly child: ChildProcess }> {
  const child = fork(PROGRAM);
  child.send({ dest, privateKey } satisfies Task);
  const [ways] = (await once(child, "message")) as [RealityWays];
  return { ...ways, child };
}

if (process.argv[1] === PROGRAM)
  process.once("message", (task: Task) => void open(task).then((ways) => process.send?.(ways)));
