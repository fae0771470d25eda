/** Shadowsocks: `type: ss` among the proxies, `type: shadowsocks` among the listeners (docs/protocols/shadowsocks.md). */
import { inboundSide, outboundSide, type Protocol } from "#core/protocol.ts";
import { descriptions } from "./descriptions.ts";
import { links, listenerNodes } from "./links.ts";
import { inboundSchema, outboundSchema } from "./options.ts";

export const ss: Protocol = {
  type: "ss",
  outbound: outboundSide("Shadowsocks", outboundSchema, async (...given) =>
    (await import("./outbound.ts")).openOutbound(...given),
  ),
  links,
  descriptions,
};

export const shadowsocks: Protocol = {
  type: "shadowsocks",
  inbound: inboundSide(inboundSchema, async (...given) =>
    (await import("./inbound.ts")).openInbound(...given),
  ),
  listenerNodes,
  descriptions,
};
