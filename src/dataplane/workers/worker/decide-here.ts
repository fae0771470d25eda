import type { PlainHandshake } from "#core/accepted.ts";
import type { FirstRequest } from "#protocols/first-requests.ts";
import type { PlainRequest } from "#protocols/mixed/plain-handshake.ts";
import { SOCKADDR_BYTES, v4At } from "#platform/linux/sockaddr.ts";
import type { Dial } from "#dataplane/workers/shared/request-memory.ts";
import { type AskedConnection, NO_USER, type Wish } from "./wish.ts";
import type { PendingOwner, RequestingTask } from "./pending-owner.ts";

const NO_BYTES = new Uint8Array();
/** Success is the first byte of what is relayed. */
const saysNothing = (): Uint8Array => NO_BYTES;

type Client = Pick<RequestingTask, "slot" | "listener" | "fd">;

/** How to dial for a client, and what it has asked for first, if it is a user. */
interface DecidedHere {
  readonly dial: Dial;
  readonly first: FirstRequest | null;
}

/** Whose `request` has been read into `AcceptCalls.bytes`, or of whom nothing is read. Null: the main thread decides. */
export function decideHere(
  owner: PendingOwner,
  client: Client,
  handshake: PlainHandshake,
  { size, wish: said }: PlainRequest,
): DecidedHere | null {
  const { listener, fd } = client;
  if (handshake === "first-bytes") return decideFirst(owner, client, owner.calls.bytes.subarray(0, size));
  const wish = said ?? knownWish(owner, listener, fd, handshake);
  if (wish === null) return null; // where it wants to is not known here
  const local = handshake === "transparent" ? owner.nameOf(listener) : owner.localOf(listener, fd);
  const dial = owner.decider.decide(askedFor(client, local, wish, NO_USER));
  return dial && { dial, first: null };
}

function decideFirst(owner: PendingOwner, client: Client, said: Buffer): DecidedHere | null {
  const { decider } = owner;
  const first = decider.requestOf(client.listener, said);
  if (first === null) return null;
  const { type, destination, user } = first;
  const local = owner.localOf(client.listener, client.fd);
  const dial = decider.decide(askedFor(client, local, { type, destination, success: saysNothing }, user));
  return dial && { dial, first };
}

/** Written out: a literal with others spread in costs a call into the runtime for each name. */
function askedFor(
  { slot, listener }: Client,
  local: Uint8Array,
  { type, destination, success }: Wish,
  user: number,
): AskedConnection {
  return { type, destination, success, user, slot, listener, local };
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
