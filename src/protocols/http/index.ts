import type { Protocol } from "#core/protocol.ts";
import { accountNodes } from "#protocols/shared/links/account.ts";
import { httpInbound } from "./inbound.ts";
import { links } from "./links.ts";
import { httpOutbound } from "./outbound.ts";

export const http: Protocol = {
  type: "http",
  inbound: httpInbound,
  outbound: httpOutbound,
  inboundTypes: ["HTTP", "HTTPS"],
  links,
  listenerNodes: (options, listener) => accountNodes("http", options, listener),
};
