import * as z from "zod";
import { choice, flag, int, list, text } from "#core/fields.ts";
import { serverFields } from "#core/node-fields.ts";
import { userId } from "#protocols/shared/user-id.ts";
import { transportClientFields, transportServerFields } from "#transport/fields.ts";
import { muxClientFields, muxServerFields } from "#transport/mux/fields.ts";
import {
  realityClientFields,
  realityServerFields,
  tlsClientFields,
  tlsServerFields,
} from "#transport/tls/fields.ts";

/** More than 0 once asked for a header under MD5; today's servers take the AEAD header from such users, too. */
const alterId = () => int(0, 65_535);

export const CIPHERS = ["auto", "none", "zero", "aes-128-gcm", "chacha20-poly1305"] as const;

export const outboundSchema = z.object({
  ...serverFields,
  uuid: userId(),
  alterId: alterId().default(0),
  cipher: choice(CIPHERS).default("auto"),
  udp: flag().default(false),
  "packet-encoding": choice(["", "none", "packet", "packetaddr", "xudp"]).default(""),
  xudp: flag().default(false),
  "packet-addr": flag().default(false),
  "global-padding": flag().default(false),
  "authenticated-length": flag().default(false),
  tls: flag().default(false),
  servername: text().optional(),
  ...tlsClientFields,
  ...realityClientFields,
  ...transportClientFields(["tcp", "http", "h2", "ws", "grpc"]),
  ...muxClientFields,
});
export type OutboundOptions = z.output<typeof outboundSchema>;

const user = z.object({ username: text().optional(), uuid: userId(), alterId: alterId().default(0) });

export const inboundSchema = z.object({
  users: list(user),
  ...tlsServerFields,
  ...realityServerFields,
  ...transportServerFields,
  ...muxServerFields,
});
export type InboundOptions = z.output<typeof inboundSchema>;
