import { DialError } from "#core/errors.ts";
import type { Connection } from "./connection.ts";
import type { QuicStream } from "./streams/quic-stream.ts";

/** A stream of both directions, as soon as the peer allows one. Throws `DialError`; `node` is named in it. */
export async function openBidi(
  connection: Connection,
  node: string,
  signal: AbortSignal,
): Promise<QuicStream> {
  for (;;) {
    if (signal.aborted) throw new DialError("aborted", `${node}: aborted`);
    if (connection.isClosed) throw new DialError("failed", `${node}: the connection to the server is over`);
    const stream = connection.open(true);
    if (stream !== null) return stream.on("error", () => {}); // its user's own comes later than the connection may break
    const { promise, resolve } = Promise.withResolvers<void>();
    const wish = connection.whenAllowed(true, resolve);
    signal.addEventListener("abort", () => resolve(), { once: true });
    await promise;
    wish.cancel();
  }
}
