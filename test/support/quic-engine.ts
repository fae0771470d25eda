/** Threads of QUIC beside the tests of one file, as the host has them: listeners that get their memory run there. */
import type { HostMemory } from "#core/host-memory.ts";
import { openWorkerBackend, type WorkerBackend } from "#dataplane/workers/main/worker-backend.ts";
import { TlsLibrary } from "#platform/tls.ts";
import { KeptByHost } from "#protocols/crypto/kept-by-host.ts";
import { QuicThread } from "#transport/quic/remote/quic-thread.ts";
import { QuicThreads } from "#transport/quic/remote/quic-threads.ts";
import { QuicThreadsSlot } from "#transport/thread-slot.ts";

export interface QuicEngine extends AsyncDisposable {
  readonly memory: HostMemory;
  readonly engine: WorkerBackend;
  readonly threads: readonly QuicThread[];
  /** What became of a thread; null: all run. */
  died: string | null;
}

export async function openQuicEngine(count = 2): Promise<QuicEngine> {
  const memory = new KeptByHost();
  const engine = await openWorkerBackend({ tlsLibrary: new TlsLibrary(), threads: 1, onDeath() {} });
  const started: QuicThread[] = [];
  for (let index = 0; index < count; index++) {
    const parts = await engine.openQuic((why) => {
      threads.onDeath(thread, why);
      made.died = why;
    });
    const thread: QuicThread = new QuicThread(parts, { index, count });
    started.push(thread);
  }
  const threads = new QuicThreads(started);
  memory.of(QuicThreadsSlot).start = async () => threads;
  const made: QuicEngine = {
    memory,
    engine,
    threads: started,
    died: null,
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  };
  return made;
}
