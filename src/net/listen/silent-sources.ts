/** Listeners without a handshake: the destination is known otherwise, and clients get no reply. */
import type { WorkerConnection } from "#core/held.ts";
import type { InboundEnv, TakeSocket } from "#core/inbound.ts";
import type { Endpoint, Metadata } from "#core/session.ts";
import type { StreamSocket } from "#core/sockets.ts";
import { abortStream } from "#core/stream.ts";
import { type ConnectionEnds, connectionEnds, guardErrors, streamSession } from "./accept.ts";
import { OffloadedSession } from "./worker-session.ts";

export interface SilentClient extends ConnectionEnds {
  /** Where it was going before the kernel redirected it; null: it was not redirected. */
  readonly original: Endpoint | null;
}

export interface SilentListening {
  /** `listener` is the endpoint that took the client. Null: it is reset. */
  describe(client: SilentClient, listener: Endpoint): Metadata | null;
  /** Asks the kernel where a redirected client was going; absent: none is redirected here. */
  readonly originalOf?: (socket: StreamSocket, arrival: ConnectionEnds) => Endpoint | null;
  /** See `ListenOptions`. */
  readonly transparent?: boolean;
}

const NO_WORDS = Buffer.alloc(0);
const tellNothing = (): void => {}; // a failed dial shows as a close

/** The sessions are handed to `env.accept`, whichever thread accepts the connections. */
export function listenSilently(
  env: Pick<InboundEnv, "accept" | "listenTcp">,
  { describe, originalOf, transparent = false }: SilentListening,
): Promise<readonly Endpoint[]> {
  const on = (client: WorkerConnection, listener: Endpoint): void => {
    const metadata = describe(client, listener);
    if (metadata === null) client.reset();
    else env.accept(new OffloadedSession(metadata, client, NO_WORDS, () => tellNothing));
  };
  const take: TakeSocket = (socket, listener) => {
    guardErrors(socket);
    const arrival = connectionEnds(socket);
    if (arrival === null) return abortStream(socket);
    const metadata = describe({ ...arrival, original: originalOf?.(socket, arrival) ?? null }, listener);
    if (metadata === null) abortStream(socket);
    else env.accept(streamSession(metadata, socket, tellNothing));
  };
  const handshake = originalOf === undefined ? "none" : "redirected";
  return env.listenTcp(take, { transparent, front: { handshake, on } });
}
