import { BUFFER_BYTES, EAGAIN, EINTR, type RelayCalls } from "#platform/linux/relay-calls.ts";

/** How much is read of what a peer adds behind its end, in buffers: a hostile one never stops. */
const MOST_TRAILING = 16;

/**
 * Whether the socket can be closed with nothing lost of what was written to it: with something unread, or coming later, a
 * close is a reset, and throws away what the peer has not acknowledged yet. What has come is read and thrown away.
 */
export function hasArrived(calls: RelayCalls, fd: number): boolean {
  for (let reads = 0; reads < MOST_TRAILING; reads++) {
    const bytes = calls.receive(fd, BUFFER_BYTES);
    if (bytes === EAGAIN) return calls.unsent(fd) <= 0;
    if (bytes <= 0 && bytes !== EINTR) return true;
  }
  return true;
}
