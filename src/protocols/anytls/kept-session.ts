/** Sessions whose frames workers read: what is left of them here is who may open streams, and where these lead to. */
import type { WorkerConnection } from "#core/accepted.ts";
import { decodeSocksAddress } from "#net/address/socks-address.ts";
import type { DialReply } from "#net/listen/accepted-session.ts";
import type { PendingClient } from "#net/listen/first-bytes.ts";
import type { AuthenticatedConnection } from "#protocols/managed/authenticated-connection.ts";
import { versionOf } from "#protocols/udp-over-tcp/index.ts";
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

/** False: no worker has the client. */
export function keepSession(
  { connection }: PendingClient,
  scheme: PaddingScheme,
  user: AuthenticatedConnection,
): boolean {
  const worker = connection?.worker ?? null;
  if (worker === null) return false;
  const isKept = worker.openSession(Uint8Array.from(scheme.raw), {
    onStream: (stream) => acceptStream(stream, user),
    onEnded: () => held[Symbol.dispose](),
  });
  if (!isKept) return false;
  const held = user.hold(() => worker.reset());
  return true;
}

function acceptStream(connection: WorkerConnection, user: AuthenticatedConnection): void {
  const found = decodeSocksAddress(connection.request ?? Buffer.alloc(0));
  if (found === null) return connection.reset(); // the worker has read a whole one
  const version = versionOf(found.destination);
  if (version === null) return user.onKeptStream(connection, found.destination, ANSWER);
  const stream = connection.stream();
  stream.write(ANSWER.success);
  user.serveUdpOverTcp(stream, version);
}
