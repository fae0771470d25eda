import type { Protocol } from "#core/protocol.ts";
import { httpInbound } from "./inbound.ts";
import { httpOutbound } from "./outbound.ts";

export const http: Protocol = { type: "http", inbound: httpInbound, outbound: httpOutbound };
