import * as z from "zod";
import {
  choice,
  Fault,
  flag,
  int,
  list,
  mapOf,
  name,
  parseInteger,
  scalar,
  secret,
  show,
  text,
  unsetAs,
  Unsupported,
} from "#core/fields.ts";
import { parseRanges, ranges } from "#core/ranges.ts";
import { serverFields, unsupported } from "#core/node-fields.ts";
import type { BbrProfile } from "#transport/quic/congestion/bbr.ts";
import type { TransportNumbers } from "#transport/quic/wire/transport-parameters.ts";
import { MOST_SIZE } from "./gecko.ts";
import { parseDataUrl } from "./masquerade/fixed.ts";
import { muxServerFields } from "#transport/mux/fields.ts";
import { tlsClientFields, tlsServerFields } from "#transport/tls/fields.ts";

const UNITS: Readonly<Record<string, number>> = { "": 1, k: 1e3, m: 1e6, g: 1e9, t: 1e12 };
const DEFAULT_HOP_SECONDS = 30;
const LEAST_HOP_SECONDS = 5;
const MOST_WINDOW = 2 ** 30;
const DEFAULT_IDLE_MS = 30_000;
const LEAST_IDLE_MS = 1_000;
const MOST_IDLE_MS = 600_000;

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
    return (
      parseBandwidth(source) ?? new Unsupported("expected a rate such as 100 mbps, or a number of Mbit/s")
    );
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

interface WindowFields {
  readonly "initial-stream-receive-window"?: number | undefined;
  readonly "max-stream-receive-window"?: number | undefined;
  readonly "initial-connection-receive-window"?: number | undefined;
  readonly "max-connection-receive-window"?: number | undefined;
}

/** What the peer may send ahead. */
export function receiveWindows(fields: WindowFields): Partial<TransportNumbers> {
  const stream = fields["max-stream-receive-window"] ?? fields["initial-stream-receive-window"];
  const whole = fields["max-connection-receive-window"] ?? fields["initial-connection-receive-window"];
  return {
    ...(stream === undefined ? {} : { maxStreamDataBidiLocal: stream, maxStreamDataBidiRemote: stream }),
    ...(whole === undefined ? {} : { maxData: whole }),
  };
}

/** Where the key is empty: `standard`. */
export function bbrProfile({
  "bbr-profile": profile,
}: {
  readonly "bbr-profile": BbrProfile | "";
}): BbrProfile {
  return profile === "" ? "standard" : profile;
}

const window = () => unsetAs(int(16_384, MOST_WINDOW), undefined).optional();

/** A web page for visitors: `file:///folder`, `https://site`, `data:text/html,…`; nothing: there is none. */
const masquerade = () =>
  scalar({ type: "string" }, (source) => {
    const url = source === "" ? null : URL.parse(source);
    const isKnown = url !== null && /^(file|https?|data):$/.test(url.protocol);
    if (source !== "" && !isKnown)
      return new Unsupported("expected file:///folder, http(s)://site or data:TYPE,TEXT");
    const fixed = url?.protocol === "data:" ? parseDataUrl(source) : null;
    return fixed instanceof Fault ? fixed : source;
  });

/** Milliseconds; 0: the default. */
const idleMs = () =>
  scalar({ type: "integer", minimum: 0, maximum: MOST_IDLE_MS }, (source, raw) => {
    const value = parseInteger(source) ?? -1;
    if (value === 0) return DEFAULT_IDLE_MS;
    if (value >= LEAST_IDLE_MS && value <= MOST_IDLE_MS) return value;
    return new Unsupported(
      `expected milliseconds, from ${LEAST_IDLE_MS} to ${MOST_IDLE_MS}, got ${show(raw)}`,
    );
  });

/** Keys of either side. */
const obfsFields = {
  obfs: choice(["", "salamander", "gecko"]).default(""),
  "obfs-password": secret().default(""),
  "obfs-min-packet-size": int(0, MOST_SIZE).default(0),
  "obfs-max-packet-size": int(0, MOST_SIZE).default(0),
};

export const inboundSchema = z.object({
  users: mapOf(secret()),
  up: bandwidth().default(0),
  down: bandwidth().default(0),
  "ignore-client-bandwidth": flag().default(false),
  ...obfsFields,
  masquerade: masquerade().default(""),
  "max-idle-time": idleMs().default(DEFAULT_IDLE_MS),
  alpn: list(name()).optional(),
  "bbr-profile": choice(["", "conservative", "standard", "aggressive"]).default(""),
  cwnd: int(0, 1_000_000).optional(),
  "udp-mtu": unsetAs(int(300, 65_535), 65_535).default(65_535),
  "initial-stream-receive-window": window(),
  "max-stream-receive-window": window(),
  "initial-connection-receive-window": window(),
  "max-connection-receive-window": window(),
  "realm-opts": unsupported("realms are not in this build"),
  ...tlsServerFields,
  "ech-key": unsupported("Encrypted ClientHello is not available over QUIC"),
  ...muxServerFields,
});
export type InboundOptions = z.output<typeof inboundSchema>;

/** A node has `port`, `ports` or both. */
export const outboundSchema = z
  .object({
    ...serverFields,
    port: serverFields.port.optional(),
    password: secret().default(""),
    ports: unsetAs(ranges(1, 65_535), undefined).optional(),
    "hop-interval": unsetAs(hopInterval(), undefined).optional(),
    up: bandwidth().default(0),
    down: bandwidth().default(0),
    ...obfsFields,
    sni: text().optional(),
    "bbr-profile": choice(["", "conservative", "standard", "aggressive"]).default(""),
    cwnd: int(0, 1_000_000).optional(),
    "udp-mtu": unsetAs(int(300, 65_535), 65_535).default(65_535),
    "handshake-timeout": int(0, 600).default(0),
    "initial-stream-receive-window": window(),
    "max-stream-receive-window": window(),
    "initial-connection-receive-window": window(),
    "max-connection-receive-window": window(),
    udp: flag().default(true),
    "realm-opts": unsupported("realms are not in this build"),
    ...tlsClientFields,
  })
  .superRefine(({ port, ports }, context) => {
    if (port !== undefined || ports !== undefined) return;
    context.addIssue({ code: "custom", path: ["port"], message: "is required", params: { missing: true } });
  });
export type OutboundOptions = z.output<typeof outboundSchema>;
