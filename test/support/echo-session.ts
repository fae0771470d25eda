/** Sessions that send back what comes, as an origin behind a listener would, and a client of one. */
import type { Duplex } from "node:stream";
import type { Session } from "#core/session.ts";

export function echo(session: Session): void {
  if (session.network === "udp") {
    const { flow } = session;
    flow.receive(({ payload, destination }) => flow.send({ payload, destination }));
    return;
  }
  session.reply(null);
  session.stream.pipe(session.stream);
}

/** Sends all, and answers what came by the end. */
export async function exchange(stream: Duplex, bytes: Buffer): Promise<Buffer> {
  stream.end(bytes);
  const pieces: Buffer[] = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces);
}
