/** From the request that a worker has read to the session. */
import type { AcceptedConnection } from "#core/accepted.ts";
import type { StreamSession } from "#core/session.ts";
import type { ListenerContext } from "#net/listen/accept.ts";
import { requestedTunnel } from "#protocols/http/tunnel.ts";
import { requestedSocks4, requestedSocks5 } from "#protocols/socks/session.ts";

/** `request` is what `readPlain` has found to be one. */
export function requestedSession(
  connection: AcceptedConnection,
  request: Buffer,
  listener: ListenerContext,
): StreamSession {
  const [first] = request;
  if (first === 5) return requestedSocks5(connection, request, listener);
  return first === 4
    ? requestedSocks4(connection, request, listener)
    : requestedTunnel(connection, request, listener);
}
