/** Chrome's ClientHello over TCP, and that of browsers built on it. */
import {
  BROWSER_PROTOCOLS,
  CERTIFICATE_TIMESTAMP,
  type ExtensionTemplate,
  GREASE,
  type HelloTemplate,
  KEY_EXCHANGE_MODES,
  list16,
  list8,
  MASTER_SECRET,
  NAME,
  PADDING,
  POINT_FORMATS,
  RENEGOTIATION,
  SESSION_TICKET,
  shares,
  STATUS_REQUEST,
  type Value,
} from "./template.ts";

const SUITES: readonly Value[] = [
  ...(["grease", 0x1301, 0x1302, 0x1303, 0xc02b, 0xc02f, 0xc02c, 0xc030] as const),
  ...[0xcca9, 0xcca8, 0xc013, 0xc014, 0x009c, 0x009d, 0x002f, 0x0035],
];
const SIGNATURES = list16(13, 0x0403, 0x0804, 0x0401, 0x0503, 0x0805, 0x0501, 0x0806, 0x0601);
const VERSIONS = list8(43, "grease", 0x0304, 0x0303);
const OLD_VERSIONS = list8(43, "grease", 0x0304, 0x0303, 0x0302, 0x0301);
const BROTLI = list8(27, 2);
const ECH: ExtensionTemplate = { kind: "ech", aeads: [1], payloads: [144, 176, 208, 240] };

export const CHROME_133: HelloTemplate = {
  name: "Chrome 133",
  since: "2025-02",
  suites: SUITES,
  extensions: [
    GREASE,
    NAME,
    MASTER_SECRET,
    RENEGOTIATION,
    list16(10, "grease", 0x11ec, 0x1d, 0x17, 0x18),
    POINT_FORMATS,
    SESSION_TICKET,
    BROWSER_PROTOCOLS,
    STATUS_REQUEST,
    SIGNATURES,
    CERTIFICATE_TIMESTAMP,
    shares("grease", 0x11ec, 0x1d),
    KEY_EXCHANGE_MODES,
    VERSIONS,
    BROTLI,
    { kind: "settings", type: 17613 },
    ECH,
    GREASE,
  ],
  isShuffled: true,
};

export const CHROME_120: HelloTemplate = {
  name: "Chrome 120",
  since: "2023-12",
  suites: SUITES,
  extensions: [
    GREASE,
    NAME,
    MASTER_SECRET,
    RENEGOTIATION,
    list16(10, "grease", 0x1d, 0x17, 0x18),
    POINT_FORMATS,
    SESSION_TICKET,
    BROWSER_PROTOCOLS,
    STATUS_REQUEST,
    SIGNATURES,
    CERTIFICATE_TIMESTAMP,
    shares("grease", 0x1d),
    KEY_EXCHANGE_MODES,
    VERSIONS,
    BROTLI,
    { kind: "settings", type: 17513 },
    ECH,
    GREASE,
  ],
  isShuffled: true,
};

export const QQ_11: HelloTemplate = {
  name: "QQ browser 11.1",
  since: "2022-05",
  suites: SUITES,
  extensions: [
    GREASE,
    NAME,
    MASTER_SECRET,
    RENEGOTIATION,
    list16(10, "grease", 0x1d, 0x17, 0x18),
    POINT_FORMATS,
    SESSION_TICKET,
    BROWSER_PROTOCOLS,
    STATUS_REQUEST,
    SIGNATURES,
    CERTIFICATE_TIMESTAMP,
    shares("grease", 0x1d),
    KEY_EXCHANGE_MODES,
    OLD_VERSIONS,
    BROTLI,
    { kind: "settings", type: 17513 },
    GREASE,
    PADDING,
  ],
  isShuffled: false,
};
