import type { Protocol } from "#core/protocol.ts";
import { accountNodes } from "#protocols/shared/links/account.ts";
import { socksInbound } from "./inbound.ts";
import { links } from "./links.ts";
import { socks5Outbound } from "./outbound.ts";

/** Listeners speak SOCKS 4, 4a and 5. */
export const socks: Protocol = {
  type: "socks",
  inbound: socksInbound,
  inboundTypes: ["SOCKS", "SOCKS4", "SOCKS5"],
  listenerNodes: (options, listener) => accountNodes("socks5", options, listener),
};
/** Nodes speak SOCKS5. */
export const socks5: Protocol = { type: "socks5", outbound: socks5Outbound, links };
