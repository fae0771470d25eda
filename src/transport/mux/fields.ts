import * as z from "zod";
import { choice, Unsupported, flag, int, scalar, text, unsetAs } from "#core/fields.ts";
import { MUX_COOL, MUX_PROTOCOLS } from "./preface.ts";

/** TCP Brutal is a congestion control of a kernel module: switched off is fine, switched on is refused. */
const noBrutal = z.object({
  enabled: scalar({ type: "boolean" }, (source) =>
    ["true", "yes", "on", "1"].includes(source.toLowerCase())
      ? new Unsupported("TCP Brutal needs a kernel module and is not available; switch it off on both sides")
      : false,
  ).optional(),
  up: text().optional(),
  down: text().optional(),
});

const protocol = choice([...MUX_PROTOCOLS, MUX_COOL]);

const smux = z
  .object({
    enabled: flag().default(false),
    protocol: unsetAs(protocol, "h2mux").default("h2mux"),
    "max-connections": int(0, 1024).default(0),
    "min-streams": int(0, 1024).default(0),
    "max-streams": int(0, 1024).default(0),
    padding: flag().default(false),
    statistic: flag().default(false),
    "only-tcp": flag().default(false),
    "brutal-opts": noBrutal.optional(),
  })
  .superRefine((value, context) => {
    if (value.protocol === MUX_COOL && value.padding)
      context.addIssue({ code: "custom", message: "mux.cool has none", path: ["padding"] });
    if (value["max-streams"] === 0 || (value["max-connections"] === 0 && value["min-streams"] === 0)) return;
    const message = "excludes max-connections and min-streams";
    context.addIssue({ code: "custom", message, path: ["max-streams"] });
  });

/** The node's side. */
export const muxClientFields = { smux: smux.optional() };
export type MuxClientOptions = z.output<typeof smux>;

const muxOption = z.object({ padding: flag().default(false), brutal: noBrutal.optional() });

/** The listener's side. Multiplexing is understood without it. */
export const muxServerFields = { "mux-option": muxOption.optional() };
export type MuxServerOptions = z.output<typeof muxOption>;
