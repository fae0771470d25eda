/**
 * The socket to the remote of a pending connection. Its descriptor stands only in the relay memory, where the main thread
 * finds it should this worker die.
 */
import { SOCKADDR_IN_BYTES } from "#platform/linux/sockaddr.ts";
import { int32At } from "#lib/at.ts";
import type { Dial } from "#dataplane/workers/shared/accept-memory.ts";
import type { PendingOwner } from "./pending-owner.ts";

export const EINPROGRESS = -115;

/** -1: none is open. */
export function remoteOf({ table }: PendingOwner, slot: number): number {
  return int32At(table.descriptors, slot * 2 + 1);
}

/** Opens the socket and begins to connect it. Negative: an errno; the socket, if it was opened, is still to be closed. */
export function dialRemote({ calls, routes, table }: PendingOwner, slot: number, dial: Dial): number {
  const { address, mark, idleSeconds, intervalSeconds, device } = dial;
  const family = address.length === SOCKADDR_IN_BYTES ? 4 : 6;
  const fd = calls.open(family);
  if (fd < 0) return fd;
  // Before a packet leaves: a connection that comes back to this machine is recognised by the name of this socket.
  Atomics.store(table.descriptors, slot * 2 + 1, fd);
  // Most connections by a cached route end before a probe would be due; `onJoined` sets the probes of the others.
  const isProbed = idleSeconds > 0 && !routes.has(slot);
  if (isProbed) calls.keepAlive(fd, idleSeconds, intervalSeconds);
  const marked = mark === 0 ? 0 : calls.mark(fd, mark);
  const bound = device.length === 0 ? 0 : calls.bindToDevice(fd, family, device);
  if (marked < 0 || bound < 0) return Math.min(marked, bound);
  calls.address.set(address);
  return calls.connect(fd, address.length);
}

/** Does nothing where none is open. */
export function closeRemote({ calls, host, table }: PendingOwner, slot: number): void {
  const fd = int32At(table.descriptors, slot * 2 + 1);
  Atomics.store(table.descriptors, slot * 2 + 1, -1); // first: the name of another socket with this number must not be asked for
  host.atSeam?.("closing");
  if (fd >= 0) calls.close(fd);
}
