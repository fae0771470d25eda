import type { PlainHandshake } from "#core/accepted.ts";
import { SOCKADDR_BYTES, v4At } from "#platform/linux/sockaddr.ts";
import type { Dial } from "#dataplane/workers/shared/request-memory.ts";
import type { Wish } from "./wish.ts";
import type { PendingOwner, RequestingTask } from "./pending-owner.ts";

type Client = Pick<RequestingTask, "slot" | "listener" | "fd">;

/** How to dial for a client that wants this, or, where `wish` is null, what all of its listener want; null: the main thread decides. */
export function decideHere(
  owner: PendingOwner,
  { slot, listener, fd }: Client,
  handshake: PlainHandshake,
  said: Wish | null,
): Dial | null {
  const wish = said ?? knownWish(owner, listener, fd, handshake);
  if (wish === null) return null; // where it wants to is not known here
  const local = handshake === "transparent" ? owner.nameOf(listener) : owner.localOf(listener, fd);
  const { type, destination, success } = wish;
  return owner.decider.decide({ type, destination, success, slot, listener, local });
}

/** Of a client that is asked for nothing. A redirected one's `redirectedTo` is read. */
function knownWish(
  { calls, decider }: PendingOwner,
  listener: number,
  fd: number,
  handshake: PlainHandshake,
): Wish | null {
  if (handshake === "redirected") return decider.captured("Redir", calls.bytes);
  if (handshake !== "transparent") return decider.wishOf(listener);
  return calls.localName(fd) < 0 ? null : decider.captured("TProxy", calls.address);
}

/** Where a client was going, into `AcceptCalls.bytes`. What it answers is its length; negative: it came by itself. */
export function redirectedTo({ calls, shared }: PendingOwner, { slot, fd }: Client): number {
  const isV4 = v4At(shared.sources, slot * SOCKADDR_BYTES) > 0;
  return calls.originalName(fd, isV4 ? 4 : 6);
}
