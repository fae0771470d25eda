/** Loaded into a core (NODE_OPTIONS=--import): at each SIGWINCH the threads of its stores are ended, for real. */
import { subscribe } from "node:diagnostics_channel";
import { isMainThread } from "node:worker_threads";

if (isMainThread) {
  const workers = [];
  subscribe("worker_threads", ({ worker }) => workers.push(worker));
  process.on("SIGWINCH", () => {
    for (const worker of workers) if (worker.threadName?.startsWith("store")) void worker.terminate();
  });
}
