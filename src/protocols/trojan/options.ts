import * as z from "zod";
import { Unsupported, flag, list, scalar, secret, text } from "#core/fields.ts";
import { serverFields } from "#core/node-fields.ts";
import { transportClientFields } from "#transport/fields.ts";
import { muxClientFields } from "#transport/mux/fields.ts";
import { realityClientFields, tlsClientFields } from "#transport/tls/fields.ts";
import { listenerFields } from "#protocols/shared/listener-fields.ts";
import { findMethod, type Method } from "#protocols/shadowsocks/methods.ts";

/** The inner Shadowsocks layer of trojan-go at a listener: switched off is fine, switched on is refused. */
const noInnerLayer = z.object({
  enabled: scalar({ type: "boolean" }, (source) =>
    ["true", "yes", "on", "1"].includes(source.toLowerCase())
      ? new Unsupported(
          "the inner Shadowsocks layer of trojan-go is not available here; switch it off on both sides",
        )
      : false,
  ).optional(),
  method: text().optional(),
  password: secret().optional(),
});

const INNER_METHOD = "aes-128-gcm";

/** Of a node. What is switched off may say anything. */
const innerLayer = z
  .object({
    enabled: flag().default(false),
    method: text().default(INNER_METHOD),
    password: secret().default(""),
  })
  .superRefine(({ enabled, method, password }, context) => {
    const fault = (key: string, message: string): void =>
      context.addIssue({ code: "custom", path: [key], message, params: { unsupported: true } });
    if (enabled && innerMethod(method) === null)
      fault("method", "expected aes-128-gcm, aes-256-gcm or chacha20-ietf-poly1305");
    if (enabled && password === "") fault("password", "is empty");
  });

/** The cipher of the inner layer; null: it has no such cipher. */
export function innerMethod(name: string): Method | null {
  const method = findMethod(name || INNER_METHOD);
  return method?.edition === "sip004" ? method : null;
}

export const outboundSchema = z.object({
  ...serverFields,
  password: secret(),
  udp: flag().default(false),
  sni: text().optional(),
  ...tlsClientFields,
  ...realityClientFields,
  ...transportClientFields(["tcp", "ws", "grpc"]),
  ...muxClientFields,
  "ss-opts": innerLayer.optional(),
});
export type OutboundOptions = z.output<typeof outboundSchema>;

export const inboundSchema = z.object({
  users: list(z.object({ username: text().optional(), password: secret() })),
  ...listenerFields,
  "ss-option": noInnerLayer.optional(),
});
export type InboundOptions = z.output<typeof inboundSchema>;
