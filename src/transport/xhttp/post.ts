/** The body of one post of packet-up, as it comes. */
import type { Readable } from "node:stream";
import { MAX_POST_BYTES } from "./padding.ts";
import type { XhttpSession } from "./session.ts";

export interface PostEvents {
  onWhole(body: Buffer): void;
  /** Nothing more of it is kept. */
  refuse(status: number): void;
}

/** One of `refuse` and `onWhole` is called, unless its client gives it up. */
export function gather(request: Readable, session: XhttpSession, { onWhole, refuse }: PostEvents): void {
  const { bytes } = session;
  const parts: Buffer[] = [];
  let size = 0;
  let isOver = false;
  const forget = (): void => {
    bytes.add(-size);
    size = parts.length = 0;
  };
  const end = (status: number | null): void => {
    if (isOver) return;
    isOver = true;
    session.off("close", onGone);
    forget();
    if (status !== null) refuse(status);
  };
  // As one that comes whole behind the session's end; and its client must not have us wait for the rest.
  const onGone = (): void => end(200);
  session.on("close", onGone);
  request.on("data", (piece: Buffer) => {
    if (isOver) return;
    if (size + piece.length > MAX_POST_BYTES) return end(413);
    if (!bytes.hasRoom(piece.length)) return end(503);
    size += piece.length;
    bytes.add(piece.length);
    parts.push(piece);
  });
  request.once("close", () => end(null));
  request.on("end", () => {
    if (isOver) return;
    const body = Buffer.concat(parts);
    end(null); // the session counts it
    onWhole(body);
  });
}
