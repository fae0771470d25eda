/** From a plain request that a relay thread has read to the session. */
import type { WorkerConnection } from "#core/held.ts";
import type { StreamSession } from "#core/session.ts";
import type { ListenerContext } from "#net/listen/accept.ts";
import { connectSession } from "#protocols/http/tunnel.ts";
import { socks4Session, socks5Session } from "#protocols/socks/session.ts";

/** `client.request` is what `readPlain` has found to be one. */
export function offloadedSession(client: WorkerConnection, place: ListenerContext): StreamSession {
  const [first] = client.request;
  if (first === 5) return socks5Session(client, place);
  return first === 4 ? socks4Session(client, place) : connectSession(client, place);
}
