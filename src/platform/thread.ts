import { Worker, type WorkerOptions } from "node:worker_threads";

const BOOT = new URL("../boot-thread.mjs", import.meta.url);

/** Where the program of a thread is: beside the file that starts it in a checkout, beside the bundle in a build (scripts/build.mjs). */
export interface ThreadProgram {
  /** `import.meta.url` of the file that starts it. */
  readonly from: string;
  /** Relative to that file. */
  readonly source: string;
  readonly built: string;
}

export function openThread({ from, source, built }: ThreadProgram, options: WorkerOptions): Worker {
  if (!from.endsWith(".ts")) return new Worker(new URL(built, from), options);
  return new Worker(BOOT, { ...options, argv: [new URL(source, from).href] });
}
