/** A thread of QUIC beside the tests of one file, as the host has one: listeners that get its memory run there. */
import type { HostMemory } from "#core/inbound.ts";
import { openWorkerBackend, type WorkerBackend } from "#dataplane/workers/main/worker-backend.ts";
import { TlsLibrary } from "#platform/tls.ts";
import { KeptByHost } from "#protocols/crypto/kept-by-host.ts";
import { QuicThread } from "#transport/quic/remote/quic-thread.ts";
import { QuicThreadSlot } from "#transport/thread-slot.ts";

export interface QuicEngine extends AsyncDisposable {
  readonly memory: HostMemory;
  readonly engine: WorkerBackend;
  readonly thread: QuicThread;
  /** What became of the thread; null: it runs. */
  died: string | null;
}

export async function openQuicEngine(): Promise<QuicEngine> {
  const memory = new KeptByHost();
  const engine = await openWorkerBackend({ tlsLibrary: new TlsLibrary(), threads: 1, onDeath() {} });
  const parts = await engine.openQuic((why) => {
    thread.onDeath(why);
    made.died = why;
  });
  const thread = new QuicThread(parts);
  memory.of(QuicThreadSlot).start = async () => thread;
  const made: QuicEngine = {
    memory,
    engine,
    thread,
    died: null,
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  };
  return made;
}
