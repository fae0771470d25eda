/** Sessions whose frames workers read: what is left of them here is who may open streams, and where these lead to. */
import type { ClientWire, WorkerConnection } from "#core/accepted.ts";
import { decodeSocksAddress } from "#net/address/socks-address.ts";
import type { DialReply } from "#net/listen/accepted-session.ts";
import type { PendingClient } from "#net/listen/first-bytes.ts";
import type { AuthenticatedConnection } from "#protocols/managed/authenticated-connection.ts";
import type { PaddingScheme } from "./padding.ts";
import { problemOf } from "./server-session.ts";

/** What a stream is answered that this thread serves, in front of its data: LENGTH(1) PROBLEM, without one for success. */
const ANSWER: DialReply = {
  success: Uint8Array.of(0),
  fail(stream, failure) {
    const problem = Buffer.from(problemOf(failure)).subarray(0, 255);
    stream.end(Buffer.concat([Uint8Array.of(problem.length), problem]));
  },
};

const PLAIN: ClientWire = { begin: () => ({ kind: "plain", numbers: [], unread: null }) };

/** False: no worker has the client, or neither its TLS nor its REALITY. */
export function keepSession(
  client: PendingClient,
  scheme: PaddingScheme,
  user: AuthenticatedConnection,
): boolean {
  const { tls = null, records = null } = client.connection ?? {};
  if (tls === null && records === null) return false;
  const session = { frames: "padded", padding: Uint8Array.from(scheme.raw) } as const;
  return user.keepSession(client, session, PLAIN, (stream) => acceptStream(stream, user));
}

function acceptStream(connection: WorkerConnection, user: AuthenticatedConnection): void {
  const found = decodeSocksAddress(connection.request ?? Buffer.alloc(0));
  if (found === null) return connection.reset(); // the worker has read a whole one
  user.serveKeptStream(connection, found.destination, ANSWER, true);
}
