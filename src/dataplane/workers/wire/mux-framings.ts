import type { MuxRecipe } from "#core/wire-recipe.ts";
import { encodePreface } from "#transport/mux/preface.ts";
import { Http2ClientFraming } from "./http2-client-framing.ts";
import type { MuxFraming } from "./mux-framing.ts";
import { SmuxFraming } from "./smux-framing.ts";
import { YamuxFraming } from "./yamux-framing.ts";

/** Of one session, from either side. */
export function newMuxFraming(protocol: "smux" | "yamux"): MuxFraming {
  return protocol === "smux" ? new SmuxFraming() : new YamuxFraming();
}

/** That of a connection to the server of a node, and what goes out in front of all frames. */
export function newNodeFraming(protocol: MuxRecipe["protocol"]): readonly [MuxFraming, Uint8Array] {
  if (typeof protocol === "string")
    return [newMuxFraming(protocol), encodePreface({ protocol, padding: false })];
  const framing = new Http2ClientFraming(protocol);
  return [framing, framing.encodePreface()];
}
