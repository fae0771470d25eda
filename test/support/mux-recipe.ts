import { randomUUID } from "node:crypto";
import type { MuxRecipe } from "#core/wire-recipe.ts";

/** Of a node whose connections many streams share. */
export function muxRecipe(fields: Pick<MuxRecipe, "base"> & Partial<MuxRecipe>): MuxRecipe {
  return {
    id: randomUUID(),
    protocol: "smux",
    maxConnections: 0,
    minStreams: 0,
    maxStreams: 0,
    gone: new SharedArrayBuffer(4),
    ...fields,
  };
}
