import { DialError } from "#core/errors.ts";
import type { Connection } from "./connection.ts";
import type { QuicStream } from "./streams/quic-stream.ts";

/** So long a peer that allows no stream may take to allow one: others end meanwhile, or it has only just begun to count. */
const MOST_WAIT_MS = 2_000;

/** The peer allows no stream: what is new had better go by another connection. */
export class NoStream extends DialError {
  constructor(node: string) {
    super("failed", `${node}: the server has allowed no further stream within ${MOST_WAIT_MS} ms`);
  }
}

/** A stream of both directions, as soon as the peer allows one. Throws `DialError`, or `NoStream`; `node` is named in it. */
export async function openBidi(
  connection: Connection,
  node: string,
  signal: AbortSignal,
): Promise<QuicStream> {
  const endMs = performance.now() + MOST_WAIT_MS;
  for (;;) {
    if (signal.aborted) throw new DialError("aborted", `${node}: aborted`);
    if (connection.isClosed) throw new DialError("failed", `${node}: the connection to the server is over`);
    const stream = connection.open(true);
    if (stream !== null) return stream.on("error", () => {}); // its user's own comes later than the connection may break
    const leftMs = endMs - performance.now();
    if (leftMs <= 0) throw new NoStream(node);
    const { promise, resolve } = Promise.withResolvers<void>();
    const wish = connection.whenAllowed(true, resolve);
    const late = setTimeout(resolve, leftMs);
    const onAbort = (): void => resolve();
    signal.addEventListener("abort", onAbort, { once: true });
    await promise;
    signal.removeEventListener("abort", onAbort);
    clearTimeout(late);
    wish.cancel();
  }
}
