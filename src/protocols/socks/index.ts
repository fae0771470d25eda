import type { Protocol } from "#core/protocol.ts";
import { socksInbound } from "./inbound.ts";
import { socks5Outbound } from "./outbound.ts";

/** Listeners speak SOCKS 4, 4a and 5. */
export const socks: Protocol = { type: "socks", inbound: socksInbound };
/** Nodes speak SOCKS5. */
export const socks5: Protocol = { type: "socks5", outbound: socks5Outbound };
