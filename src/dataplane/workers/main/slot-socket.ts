/** The sockets in a worker's slot, as the main thread takes or looks at them. */
import { Socket } from "node:net";
import type { LocalEnd } from "#core/accepted.ts";
import type { StreamSocket } from "#core/sockets.ts";
import type { AcceptCalls } from "#platform/linux/accept-calls.ts";
import { TAKE } from "#dataplane/workers/shared/opcodes.ts";
import type { Sockaddrs } from "#dataplane/workers/shared/sockaddrs.ts";
import { int32At } from "#lib/at.ts";
import { socketOf } from "./socket-of.ts";
import type { WorkerHandle } from "./worker-handle.ts";

/** The near end of what a thread has dialled for the client of a slot; null: there is none yet, or any more. */
export function dialledFrom(
  slot: number,
  { atSeam, table }: Pick<WorkerHandle, "atSeam" | "table">,
  { calls, sockaddrs }: { readonly calls: AcceptCalls; readonly sockaddrs: Sockaddrs },
): LocalEnd | null {
  const index = slot * 2 + 1;
  const fd = Atomics.load(table.descriptors, index);
  atSeam?.("named");
  if (fd < 0 || calls.localName(fd) < 0) return null;
  // The thread strikes a number off before it closes it: else the name may be of another's socket.
  if (Atomics.load(table.descriptors, index) !== fd) return null;
  const { ip, port } = sockaddrs.local(calls.address);
  return port === 0 ? null : { ip, port, descriptor: fd };
}

/** The client's, as a socket of the runtime, with what follows the handshake still unread. The slot is the thread's again. */
export function socketOfSlot(
  thread: WorkerHandle,
  slot: number,
  handshakeBytes: number,
  calls: AcceptCalls,
): StreamSocket {
  const fd = descriptorOfSlot(thread, slot, calls);
  if (fd >= 0 && handshakeBytes > 0) calls.consume(fd, handshakeBytes);
  return socketOf(fd, calls) ?? new Socket().destroy();
}

/** A second descriptor of the client, which is ours; the slot is the thread's again. -1: there is none. */
export function descriptorOfSlot(thread: WorkerHandle, slot: number, calls: AcceptCalls): number {
  const fd = calls.duplicate(int32At(thread.table.descriptors, slot * 2));
  thread.untrack(slot);
  thread.command(slot, TAKE);
  return fd;
}
