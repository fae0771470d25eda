import * as z from "zod";
import { Unsupported, flag, list, scalar, secret, text } from "#core/fields.ts";
import { serverFields } from "#core/node-fields.ts";
import { transportClientFields } from "#transport/fields.ts";
import { muxClientFields } from "#transport/mux/fields.ts";
import { realityClientFields, tlsClientFields } from "#transport/tls/fields.ts";
import { listenerFields } from "#protocols/shared/listener-fields.ts";

/** The inner Shadowsocks layer of trojan-go: switched off is fine, switched on is refused. */
const noInnerLayer = z.object({
  enabled: scalar({ type: "boolean" }, (source) =>
    ["true", "yes", "on", "1"].includes(source.toLowerCase())
      ? new Unsupported(
          "the inner Shadowsocks layer of trojan-go is not available; switch it off on both sides",
        )
      : false,
  ).optional(),
  method: text().optional(),
  password: secret().optional(),
});

export const outboundSchema = z.object({
  ...serverFields,
  password: secret(),
  udp: flag().default(false),
  sni: text().optional(),
  ...tlsClientFields,
  ...realityClientFields,
  ...transportClientFields(["tcp", "ws", "grpc"]),
  ...muxClientFields,
  "ss-opts": noInnerLayer.optional(),
});
export type OutboundOptions = z.output<typeof outboundSchema>;

export const inboundSchema = z.object({
  users: list(z.object({ username: text().optional(), password: secret() })),
  ...listenerFields,
  "ss-option": noInnerLayer.optional(),
});
export type InboundOptions = z.output<typeof inboundSchema>;
