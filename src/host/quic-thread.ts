/** The thread that runs listeners of QUIC, joined to the relay workers of the host. */
import type { BackendChoice } from "#dataplane/backend-choice.ts";
import { QuicThread } from "#transport/quic/remote/quic-thread.ts";

/** Null: this system or configuration has none, and listeners run on the main thread. Never rejects. */
export async function startQuicThread(relayPath: BackendChoice): Promise<QuicThread | null> {
  const holder: { thread: QuicThread | null } = { thread: null };
  const parts = await relayPath.openQuic((why) => holder.thread?.onDeath(why));
  return parts === null ? null : (holder.thread = new QuicThread(parts));
}
