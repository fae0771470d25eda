import { NO_MESSAGE, PLAIN } from "#dataplane/workers/shared/wire-spec.ts";
import { CLIENT } from "#dataplane/workers/shared/sides.ts";
import type { ClientBytes } from "./client-bytes.ts";
import type { PendingOwner } from "./pending-owner.ts";
import type { WireMessages } from "./pending-task.ts";
import type { Remote } from "./remote.ts";
import type { Task } from "./task.ts";

/** A client whose remote is connected. */
interface ConnectedClient {
  readonly slot: number;
  readonly fd: number;
  readonly bytes: ClientBytes;
  /** Of its handshake, which is still to be taken off. */
  readonly handshakeBytes: number;
}

/** The relay of both, `wires` being what lies over them by the main thread's plan. Null: it cannot be begun. */
export function beginRelay(
  { calls, host, table }: PendingOwner,
  { slot, fd, bytes, handshakeBytes }: ConnectedClient,
  remote: Remote,
  wires: WireMessages,
): Task | null {
  if (handshakeBytes > 0 && bytes.consume(handshakeBytes) !== handshakeBytes) return null;
  const { replyBytes } = remote;
  if (replyBytes.length > 0 && calls.say(fd, replyBytes) !== replyBytes.length) return null;
  const { stream } = bytes;
  const far = remote.begin(wires[1]);
  // A wire of plain bytes sets it by itself, once it has more than one piece.
  const isSet = far.under !== undefined;
  if (table.kinds[slot * 2 + 1] !== PLAIN && !isSet) calls.noDelay(remote.descriptor);
  const near = bytes.begin?.(wires[CLIENT]) ?? wires[CLIENT];
  return host.pair(slot, [
    stream === null ? near : { ...NO_MESSAGE, made: stream, layers: near.layers },
    far,
  ]);
}
