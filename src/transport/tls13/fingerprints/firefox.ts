/** Firefox's ClientHello over TCP: no GREASE, always the same order. */
import {
  BROWSER_PROTOCOLS,
  CERTIFICATE_TIMESTAMP,
  fixed,
  type HelloTemplate,
  KEY_EXCHANGE_MODES,
  list16,
  list8,
  MASTER_SECRET,
  NAME,
  POINT_FORMATS,
  RENEGOTIATION,
  SESSION_TICKET,
  shares,
  STATUS_REQUEST,
} from "./template.ts";

const SUITES = [
  0x1301, 0x1303, 0x1302, 0xc02b, 0xc02f, 0xcca9, 0xcca8, 0xc02c, 0xc030, 0xc00a, 0xc009, 0xc013, 0xc014,
  0x009c, 0x009d, 0x002f, 0x0035,
];
const DELEGATED_CREDENTIALS = list16(34, 0x0403, 0x0503, 0x0603, 0x0203);
const SIGNATURES = list16(
  13,
  0x0403,
  0x0503,
  0x0603,
  0x0804,
  0x0805,
  0x0806,
  0x0401,
  0x0501,
  0x0601,
  0x0203,
  0x0201,
);
const VERSIONS = list8(43, 0x0304, 0x0303);
const RECORD_SIZE_LIMIT = fixed(28, "4001");
const ECH = { kind: "ech", aeads: [1, 3], payloads: [239] } as const;

export const FIREFOX_148: HelloTemplate = {
  name: "Firefox 148",
  since: "2026-02",
  suites: SUITES,
  extensions: [
    NAME,
    MASTER_SECRET,
    RENEGOTIATION,
    list16(10, 0x11ec, 0x1d, 0x17, 0x18, 0x19, 0x100, 0x101),
    POINT_FORMATS,
    BROWSER_PROTOCOLS,
    STATUS_REQUEST,
    DELEGATED_CREDENTIALS,
    CERTIFICATE_TIMESTAMP,
    shares(0x11ec, 0x1d, 0x17),
    VERSIONS,
    SIGNATURES,
    RECORD_SIZE_LIMIT,
    list8(27, 1, 2, 3),
    ECH,
  ],
  isShuffled: false,
};

export const FIREFOX_120: HelloTemplate = {
  name: "Firefox 120",
  since: "2023-11",
  suites: SUITES,
  extensions: [
    NAME,
    MASTER_SECRET,
    RENEGOTIATION,
    list16(10, 0x1d, 0x17, 0x18, 0x19, 0x100, 0x101),
    POINT_FORMATS,
    SESSION_TICKET,
    BROWSER_PROTOCOLS,
    STATUS_REQUEST,
    DELEGATED_CREDENTIALS,
    shares(0x1d, 0x17),
    VERSIONS,
    SIGNATURES,
    KEY_EXCHANGE_MODES,
    RECORD_SIZE_LIMIT,
    ECH,
  ],
  isShuffled: false,
};
