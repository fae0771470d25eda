import type { Duplex } from "node:stream";
import { DialError } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { Session } from "#core/session.ts";
import { closeFlow } from "./udp/udp-flow.ts";
import { refused } from "./connection-log.ts";

/** Ends a session that is not admitted; a stream's client gets the reply of a failed dial. Never rejects. */
export async function refuse(session: Session, why: string, log: Log): Promise<void> {
  log.info(() => `${refused(session.metadata)}: ${why}`);
  if (session.network === "udp") return closeFlow(session.flow, log);
  session.reply(new DialError("rejected", why)); // before its stream is looked at: it may want nothing of it
  const { stream } = session;
  stream.on("error", () => stream.destroy()); // the client has gone, which is what was wanted
  await flush(stream);
  stream.destroy();
}

/** Time for the reply to a refused client; one that does not read it is cut off. */
const FLUSH_MS = 3_000;

export function flush(stream: Duplex): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (stream.destroyed) return Promise.resolve();
  const timer = setTimeout(resolve, FLUSH_MS);
  stream.once("close", resolve);
  stream.end(resolve);
  return promise.finally(() => clearTimeout(timer));
}
