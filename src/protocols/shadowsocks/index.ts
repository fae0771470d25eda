/** Shadowsocks: `type: ss` among the proxies, `type: shadowsocks` among the listeners (docs/protocols/shadowsocks.md). */
import { inboundSide, outboundSide, type Protocol } from "#core/protocol.ts";
import { descriptions } from "./descriptions.ts";
import { openInbound } from "./inbound.ts";
import { links, listenerNodes } from "./links.ts";
import { inboundSchema, outboundSchema } from "./options.ts";
import { openOutbound } from "./outbound.ts";

export const ss: Protocol = {
  type: "ss",
  outbound: outboundSide("Shadowsocks", outboundSchema, openOutbound),
  links,
  descriptions,
};

export const shadowsocks: Protocol = {
  type: "shadowsocks",
  inbound: inboundSide(inboundSchema, openInbound),
  listenerNodes,
  descriptions,
};
