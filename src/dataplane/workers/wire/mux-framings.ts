import type { MuxRecipe } from "#core/wire-recipe.ts";
import type { MuxFraming } from "./mux-framing.ts";
import { SmuxFraming } from "./smux-framing.ts";
import { YamuxFraming } from "./yamux-framing.ts";

/** Of one session, from either side. */
export function newMuxFraming(protocol: MuxRecipe["protocol"]): MuxFraming {
  return protocol === "smux" ? new SmuxFraming() : new YamuxFraming();
}
