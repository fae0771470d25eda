/** `sniffer`: the keys as they are written; conditions are read in sniffer-build.ts. */
import { block, flag, leftOut, list, mapOf, scalar, text } from "#core/fields.ts";
import { parseRanges } from "#core/ranges.ts";

export const SNIFF_PROTOCOLS = ["HTTP", "TLS", "QUIC"] as const;
export type SniffProtocol = (typeof SNIFF_PROTOCOLS)[number];

const portRange = () =>
  leftOut(scalar({ type: ["string", "integer"] }, (source) => parseRanges(source, 0, 65_535)));

export const sniffer = block({
  enable: flag().default(false),
  sniff: mapOf(
    block({
      ports: list(portRange()).default([]),
      "override-destination": flag().optional(),
    }),
  ).default({}),
  "override-destination": flag().default(true),
  "force-dns-mapping": flag().default(true),
  "parse-pure-ip": flag().default(true),
  "force-domain": list(text()).default([]),
  "skip-domain": list(text()).default([]),
  "skip-src-address": list(text()).default([]),
  "skip-dst-address": list(text()).default([]),
  /** Deprecated form, used only where `sniff` is empty. */
  sniffing: list(text()).default([]),
  "port-whitelist": list(portRange()).default([]),
});

export type SnifferKeys = ReturnType<typeof sniffer.parse>;
