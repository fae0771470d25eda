import * as z from "zod";
import { int, mapOf, secret } from "#core/fields.ts";
import { unsupported } from "#core/node-fields.ts";
import { muxServerFields } from "#transport/mux/fields.ts";
import { tlsServerFields } from "#transport/tls/fields.ts";
import { commonFields, congestionController } from "./options.ts";

export const inboundSchema = z.object({
  ...commonFields,
  /** The password of each uuid. */
  users: mapOf(secret()).prefault({}),
  "congestion-controller": congestionController().default("bbr"),
  "max-idle-time": int(0, 600_000).default(0),
  "authentication-timeout": int(0, 600_000).default(0),
  "max-udp-relay-packet-size": int(0, 65_535).default(0),
  ...tlsServerFields,
  "ech-key": unsupported("Encrypted ClientHello is not available over QUIC"),
  ...muxServerFields,
});
type WrittenOptions = z.output<typeof inboundSchema>;
export type InboundOptions = Omit<WrittenOptions, "users"> & {
  /** Null: the listener is managed, and its users come when it runs. */
  readonly users: WrittenOptions["users"] | null;
};
