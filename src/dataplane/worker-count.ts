import { availableParallelism, totalmem } from "node:os";

/** Each worker keeps some 15 MiB, whatever it has to do. */
const LITTLE_MEMORY_BYTES = 512 * 1024 * 1024;

export interface Machine {
  readonly cores: number;
  /** Of the machine, or what a container leaves of it. */
  readonly memoryBytes: number;
}

export interface WorkerCount {
  readonly count: number;
  /** For the log: who chose the number. */
  readonly why: string;
}

export function thisMachine(): Machine {
  const limit = process.constrainedMemory();
  const memoryBytes = limit > 0 ? Math.min(limit, totalmem()) : totalmem();
  return { cores: availableParallelism(), memoryBytes };
}

/** How many workers to start. `asked`: the configuration's `workers`; null: as the machine is. */
export function workerCount(asked: number | null, { cores, memoryBytes }: Machine): WorkerCount {
  if (asked !== null) return { count: asked, why: `workers: ${asked}` };
  const mib = Math.round(memoryBytes / (1024 * 1024));
  if (cores > 1 && memoryBytes < LITTLE_MEMORY_BYTES)
    return { count: 1, why: `${cores} cores, but ${mib} MiB of memory` };
  return { count: cores, why: cores === 1 ? "one core" : `${cores} cores` };
}
