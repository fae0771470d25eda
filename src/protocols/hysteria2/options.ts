import * as z from "zod";
import { choice, Fault, flag, int, scalar, secret, text } from "#core/fields.ts";
import { parseRanges, ranges } from "#core/ranges.ts";
import { serverFields, unsupported } from "#core/node-fields.ts";
import { tlsClientFields } from "#transport/tls/fields.ts";

const UNITS: Readonly<Record<string, number>> = { "": 1, k: 1e3, m: 1e6, g: 1e9, t: 1e12 };
const DEFAULT_HOP_SECONDS = 30;
const LEAST_HOP_SECONDS = 5;
const MOST_WINDOW = 2 ** 30;

/** `100 mbps`, `1 Gbps`; `MBps` are bytes; a number alone is Mbit/s. The value is bytes a second; 0: not said. */
export function parseBandwidth(source: string): number | null {
  const found = /^(\d{1,12})\s*(?:([kmgt]?)(b)ps)?$/i.exec(source.trim());
  if (found === null) return source.trim() === "" ? 0 : null;
  const [, digits = "0", unit = "m", letter = "b"] = found;
  const perSecond = Number(digits) * (UNITS[unit.toLowerCase()] ?? 1);
  return letter === "B" ? perSecond : perSecond / 8;
}

const bandwidth = () =>
  scalar({ type: "string" }, (source) => {
    return parseBandwidth(source) ?? new Fault("expected a rate such as 100 mbps, or a number of Mbit/s");
  });

/** `30`, or `20-40`: seconds, at least 5; a random one within. */
const hopInterval = () =>
  scalar({ type: "string" }, (source) => {
    const found = parseRanges(source, 0, 86_400);
    if (found instanceof Fault) return new Fault("expected seconds, such as 30 or 20-40");
    const [first] = found;
    const from = Math.max(LEAST_HOP_SECONDS, first?.from ?? DEFAULT_HOP_SECONDS);
    return { from, to: Math.max(from, first?.to ?? from) };
  });

const window = () => int(16_384, MOST_WINDOW).optional();

export const outboundSchema = z.object({
  ...serverFields,
  password: secret().default(""),
  ports: ranges(1, 65_535).optional(),
  "hop-interval": hopInterval().optional(),
  up: bandwidth().default(0),
  down: bandwidth().default(0),
  obfs: choice(["", "salamander", "gecko"]).default(""),
  "obfs-password": secret().default(""),
  sni: text().optional(),
  "bbr-profile": choice(["", "conservative", "standard", "aggressive"]).default(""),
  cwnd: int(0, 1_000_000).optional(),
  "udp-mtu": int(300, 65_535).default(1197),
  "handshake-timeout": int(0, 600).default(0),
  "initial-stream-receive-window": window(),
  "max-stream-receive-window": window(),
  "initial-connection-receive-window": window(),
  "max-connection-receive-window": window(),
  udp: flag().default(true),
  "realm-opts": unsupported("realms are not in this build"),
  ...tlsClientFields,
});
export type OutboundOptions = z.output<typeof outboundSchema>;
