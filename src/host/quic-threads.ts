/** The threads that run listeners of QUIC, joined to the relay workers of the host. */
import type { BackendChoice } from "#dataplane/backend-choice.ts";
import { thisMachine } from "#dataplane/worker-count.ts";
import { QuicThread } from "#transport/quic/remote/quic-thread.ts";
import { QuicThreads } from "#transport/quic/remote/quic-threads.ts";

/** More of them wait for the main thread, which decides about every stream. */
const MOST_THREADS = 4;
/** Of the machine's, or of what it may have of it: one more takes up to 80 MiB with a few fast clients. */
const BYTES_A_THREAD = 2 ** 30;

/** One for each worker but one, as the main thread wants a core, too; so many at most, and one where memory is little. */
function threadCount(workers: number): number {
  const fitting = Math.floor(thisMachine().memoryBytes / BYTES_A_THREAD);
  return Math.max(1, Math.min(workers - 1, MOST_THREADS, fitting));
}

/** Null: this system or configuration has none, and listeners run on the main thread. Never rejects. */
export async function startQuicThreads(relayPath: BackendChoice): Promise<QuicThreads | null> {
  const count = threadCount(relayPath.workers);
  const holder: { threads: QuicThreads | null } = { threads: null };
  const started: QuicThread[] = [];
  for (let index = 0; index < count; index++) {
    const parts = await relayPath.openQuic((why) => holder.threads?.onDeath(thread, why));
    if (parts === null) return null;
    const thread: QuicThread = new QuicThread(parts, { index, count });
    started.push(thread);
  }
  return (holder.threads = new QuicThreads(started));
}
