/** Fields that every node has, whatever it speaks. */
import { flag, leftOut, maybe, name, text } from "#core/fields.ts";
import { disguiseFields } from "#core/node-fields.ts";
import * as z from "zod";
import { mark } from "./sections/general.ts";

export type IpVersion = "dual" | "ipv4" | "ipv6" | "ipv4-prefer" | "ipv6-prefer";

export const IP_VERSIONS = [
  "dual",
  "ipv4",
  "ipv6",
  "ipv4-prefer",
  "ipv6-prefer",
] as const satisfies readonly IpVersion[];

/** `ip-version` is read as text: an unknown word is only warned about and means `dual`. */
export const proxyFields = z.object({
  name: name(),
  type: name(),
  udp: flag().default(false),
  "interface-name": text().default(""),
  "routing-mark": leftOut(mark()).default(0),
  "ip-version": text().default("dual"),
  "dialer-proxy": maybe(text()),
  tfo: flag().default(false),
  mptcp: flag().default(false),
  ...disguiseFields,
});
