/** By what workers open the streams of a node over HTTP/2, in connections of their own. */
import { randomUUID } from "node:crypto";
import type { Http2Recipe, MuxRecipe } from "#core/wire-recipe.ts";

/** So many streams never are in one connection: it is another one's turn only once the server takes no more. */
const NEVER = 2 ** 31;

export interface SharedRequests {
  readonly recipe: Omit<MuxRecipe, "base">;
  /** The node has gone: its connections take no more streams. */
  leave(): void;
}

/** As `Http2PoolOptions` has them. */
interface ConnectionBounds extends Pick<Http2Recipe, "maxStreams" | "pingIntervalMs"> {
  readonly maxConnections: number;
  readonly minStreams: number;
}

/** Null: there are no such requests. */
export function shareRequests(
  asked: Pick<Http2Recipe, "requests" | "isGrpc" | "paddedReferer"> | null,
  { maxConnections, minStreams, maxStreams, pingIntervalMs }: ConnectionBounds,
): SharedRequests | null {
  if (asked === null) return null;
  const gone = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
  return {
    recipe: {
      id: randomUUID(),
      protocol: { ...asked, maxStreams, pingIntervalMs },
      maxConnections,
      minStreams: maxConnections > 1 ? Math.max(1, minStreams) : NEVER,
      maxStreams: 0, // the connections themselves know it
      gone,
    },
    leave: () => void Atomics.store(new Int32Array(gone), 0, 1),
  };
}
