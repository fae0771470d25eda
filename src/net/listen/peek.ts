import type { Duplex } from "node:stream";
import { putBack } from "#core/stream.ts";

export interface PeekOptions {
  /** Sees the first bytes piece by piece. True: it has seen enough. */
  readonly look: (piece: Buffer) => boolean;
  /** Called once, where what is there already is not enough and the peer has to send something. */
  readonly onWait: () => void;
  readonly timeoutMs: number;
  /** No more is taken out of the stream than this and what one read gives. */
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

/**
 * Looks at what a stream begins with and puts all of it back. Settles when `look` has seen enough, at either bound, when
 * the stream ends or closes, or when the signal says so; never rejects. An end that came together with the last bytes is
 * only noticed at the time-out. The stream must not be flowing.
 */
export function peekStream(stream: Duplex, options: PeekOptions): Promise<void> {
  const { look, onWait, timeoutMs, maxBytes, signal } = options;
  const { promise, resolve } = Promise.withResolvers<void>();
  const held: Buffer[] = [];
  let heldBytes = 0;
  let finished = false;
  let waiting = false;

  const finish = (): void => {
    if (finished) return;
    finished = true;
    clearTimeout(timer);
    stream.off("readable", onReadable).off("close", finish);
    signal.removeEventListener("abort", finish);
    if (held.length > 0 && !stream.destroyed && !stream.readableEnded) putBack(stream, Buffer.concat(held));
    resolve();
  };
  const wait = (): void => {
    if (waiting) return;
    waiting = true;
    onWait();
  };
  const onReadable = (): void => {
    const size = stream.readableLength;
    // At the end there is nothing to read; a read() would report the end while bytes in front of it are held here.
    if (size === 0) return finish();
    const piece: Buffer | null = stream.read(size);
    if (piece === null) return;
    held.push(piece);
    heldBytes += piece.length;
    if (look(piece) || heldBytes >= maxBytes) finish();
    else wait();
  };
  const timer = setTimeout(finish, timeoutMs);
  signal.addEventListener("abort", finish);
  stream.on("close", finish);
  if (signal.aborted || stream.destroyed || stream.readableEnded) finish();
  else {
    if (stream.readableLength === 0) wait();
    stream.on("readable", onReadable);
  }
  return promise;
}
