import * as z from "zod";
import { choice, Fault, flag, list, scalar, show, text, Unsupported } from "#core/fields.ts";
import { serverFields } from "#core/node-fields.ts";
import { suggestion } from "#lib/nearest-word.ts";
import { listenerFields } from "#protocols/shared/listener-fields.ts";
import { userId } from "#protocols/shared/user-id.ts";
import { transportClientFields } from "#transport/fields.ts";
import { muxClientFields } from "#transport/mux/fields.ts";
import { realityClientFields, tlsClientFields } from "#transport/tls/fields.ts";
import { readClientEncryption, readServerEncryption } from "./encryption/settings.ts";
import { VISION } from "./wire.ts";

/** Empty, or the one flow there is; what follows its 16 characters (`-udp443`) is cut, as peers do. */
const flow = () =>
  scalar({ type: "string" }, (source, raw) => {
    const value = source.trim().toLowerCase();
    if (value === "" || value === "none") return "" as const;
    if (value.slice(0, VISION.length) === VISION) return VISION;
    return new Unsupported(`expected ${VISION} or nothing, got ${show(raw)}${suggestion(value, [VISION])}`);
  });

/** Kept as written: it names keys, and those of a server are secret. */
const encryption = (read: (text: string) => object | null) =>
  scalar({ type: "string", format: "password" }, (source) => {
    const value = read(source);
    return value instanceof Fault ? value : source;
  });

export const outboundSchema = z.object({
  ...serverFields,
  uuid: userId(),
  flow: flow().default(""),
  udp: flag().default(false),
  encryption: encryption(readClientEncryption).default(""),
  "packet-encoding": choice(["", "xudp", "packetaddr", "packet", "none"]).default("xudp"),
  tls: flag().default(false),
  servername: text().optional(),
  ...tlsClientFields,
  ...realityClientFields,
  ...transportClientFields(["tcp", "http", "h2", "ws", "grpc", "xhttp"]),
  ...muxClientFields,
});
export type OutboundOptions = z.output<typeof outboundSchema>;

const user = z.object({ username: text().optional(), uuid: userId(), flow: flow().default("") });

export const inboundSchema = z.object({
  users: list(user),
  decryption: encryption(readServerEncryption).default(""),
  ...listenerFields,
});
export type InboundOptions = z.output<typeof inboundSchema>;
