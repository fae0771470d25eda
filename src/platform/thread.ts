import { Worker, type WorkerOptions } from "node:worker_threads";

const BOOT = "boot-thread.mjs";

/** Where the program of a thread is: beside the file that starts it in a checkout, beside the bundle in a build (scripts/build.mjs). */
export interface ThreadProgram {
  /** `import.meta.url` of the file that starts it. */
  readonly from: string;
  /** Relative to that file. */
  readonly source: string;
  /** What `scripts/bundle.mjs` calls it. */
  readonly built: string;
}

export function openThread({ from, source, built }: ThreadProgram, options: WorkerOptions): Worker {
  const isCheckout = from.endsWith(".ts");
  const boot = isCheckout ? new URL(`../${BOOT}`, import.meta.url) : new URL(BOOT, from);
  return new Worker(boot, { ...options, argv: [isCheckout ? new URL(source, from).href : built] });
}
