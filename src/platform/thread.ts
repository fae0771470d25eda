import { Worker, type WorkerOptions } from "node:worker_threads";

const BOOT = new URL("../boot-thread.mjs", import.meta.url);

/** Runs `worker.ts` beside the file `from`, an `import.meta.url`; a build has its program as `built` beside its own (scripts/build.mjs). */
export function openThread(from: string, built: string, options: WorkerOptions): Worker {
  if (!from.endsWith(".ts")) return new Worker(new URL(built, from), options);
  return new Worker(BOOT, { ...options, argv: [new URL("worker.ts", from).href] });
}
