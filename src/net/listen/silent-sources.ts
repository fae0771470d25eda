/** Listeners without a handshake: the destination is known otherwise, and clients get no reply. */
import type { AcceptedConnection, Handshake } from "#core/accepted.ts";
import type { InboundEnv } from "#core/inbound.ts";
import type { Endpoint, Metadata } from "#core/session.ts";
import { AcceptedSession, type DialReply } from "./accepted-session.ts";

export interface SilentListening {
  /** Where a redirected connection was going is in `original`. */
  readonly handshake: Extract<Handshake, { handshake: "none" | "redirected" | "transparent" }>;
  /** `listener` is the endpoint that accepted the connection. Null: it is reset. */
  describe(connection: AcceptedConnection, listener: Endpoint): Metadata | null;
  /** See `ListenOptions`. */
  readonly transparent?: boolean;
}

const NO_REPLY: DialReply = {
  success: Buffer.alloc(0),
  fail() {}, // a failed dial shows as a close
};

/** The sessions are handed to `env.accept`. */
export function listenSilently(
  env: Pick<InboundEnv, "accept" | "listenTcp">,
  { handshake, describe, transparent = false }: SilentListening,
): Promise<readonly Endpoint[]> {
  const onAccepted = (connection: AcceptedConnection, listener: Endpoint): void => {
    const metadata = describe(connection, listener);
    if (metadata === null) connection.reset();
    else env.accept(new AcceptedSession(metadata, connection, NO_REPLY));
  };
  return env.listenTcp({ ...handshake, transparent, onAccepted });
}
