import * as z from "zod";
import { choice, flag, int, list, name, scalar, text, unsetAs, Unsupported } from "#core/fields.ts";
import { serverFields, unsupported } from "#core/node-fields.ts";
import { parseIp } from "#net/address/ip.ts";
import { tlsClientFields } from "#transport/tls/fields.ts";

const UUID = /^[0-9a-f]{32}$/i;

/** 16 bytes; null: the text is none. */
export function uuidBytes(text: string): Buffer | null {
  const digits = text.replaceAll("-", "");
  return UUID.test(digits) ? Buffer.from(digits, "hex") : null;
}

/** A secret, as it is half of what a client proves itself by. */
const uuid = () =>
  scalar({ type: "string", format: "password" }, (source) =>
    uuidBytes(source) === null ? new Unsupported("expected a UUID") : source,
  );

const password = () =>
  scalar({ type: "string", format: "password" }, (source) =>
    source === "" ? new Unsupported("is empty") : source,
  );

const address = () =>
  scalar({ type: "string" }, (source) => {
    const ip = source.trim() === "" ? null : parseIp(source.trim());
    return ip !== null || source.trim() === ""
      ? ip
      : new Unsupported("expected an address such as 192.0.2.1");
  });

/** Keys of either side. */
export const commonFields = {
  token: unsupported("version 4 of TUIC, which has a token, is not spoken; version 5 has uuid and password"),
  "bbr-profile": choice(["", "conservative", "standard", "aggressive"]).default(""),
  cwnd: int(0, 1_000_000).optional(),
  alpn: list(name()).optional(),
};

export const congestionController = () => choice(["", "cubic", "new_reno", "bbr"]);

const window = () => unsetAs(int(16_384, 2 ** 30), undefined).optional();

export const outboundSchema = z.object({
  ...serverFields,
  ...tlsClientFields,
  ...commonFields,
  // Nothing is as good as something wrong: nodes of version 4 have neither.
  uuid: uuid().prefault(""),
  password: password().prefault(""),
  ip: address().optional(),
  sni: text().optional(),
  "disable-sni": flag().default(false),
  "udp-relay-mode": choice(["", "native", "quic"]).default("native"),
  "congestion-controller": congestionController().default("cubic"),
  "reduce-rtt": flag().default(false),
  "fast-open": flag().default(true),
  "heartbeat-interval": int(0, 3_600_000).default(10_000),
  "request-timeout": int(0, 600_000).default(8000),
  "max-open-streams": int(0, 65_536).default(100),
  "max-udp-relay-packet-size": int(0, 65_535).default(1252),
  "max-datagram-frame-size": unsetAs(int(0, 65_535), undefined).optional(),
  "recv-window": window(),
  "recv-window-conn": window(),
  "disable-mtu-discovery": flag().default(false),
  udp: flag().default(true),
  "udp-over-stream": flag().default(false),
  "udp-over-stream-version": unsetAs(int(1, 2), 1).default(1),
});
export type OutboundOptions = z.output<typeof outboundSchema>;
