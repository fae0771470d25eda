// Loaded into the process of every test file: one that hangs ends there, and the run says which and what it waited for. The
// runner's own time-out fails a test, and leaves a file running whose handles stay open behind its tests.
import { isMainThread } from "node:worker_threads";

/** The longest, beside others on a busy machine, takes half of it. */
const MOST_MINUTES = 20;

if (isMainThread)
  setTimeout(() => {
    const file = process.argv[1] ?? "";
    const open = process.getActiveResourcesInfo().join(" ");
    console.error(`${file}: ended behind ${MOST_MINUTES} minutes; still open: ${open}`);
    process.exit(1);
  }, MOST_MINUTES * 60_000).unref();
