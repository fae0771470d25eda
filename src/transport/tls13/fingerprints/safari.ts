/** Safari's ClientHello over TCP: GREASE first and last, always the same order. */
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
  shares,
  STATUS_REQUEST,
  type Value,
} from "./template.ts";

const OLDER_SUITES: readonly Value[] = [
  0xc02c, 0xc02b, 0xcca9, 0xc030, 0xc02f, 0xcca8, 0xc00a, 0xc009, 0xc014, 0xc013, 0x009d, 0x009c, 0x0035,
  0x002f, 0xc008, 0xc012, 0x000a,
];
const OLD_VERSIONS = list8(43, "grease", 0x0304, 0x0303, 0x0302, 0x0301);
/** One algorithm stands twice, as in the browser. */
const OLD_SIGNATURES = list16(
  13,
  0x0403,
  0x0804,
  0x0401,
  0x0503,
  0x0203,
  0x0805,
  0x0805,
  0x0501,
  0x0806,
  0x0601,
  0x0201,
);
const GROUPS = list16(10, "grease", 0x1d, 0x17, 0x18, 0x19);
const ZLIB = list8(27, 1);
const BEFORE_GROUPS: readonly ExtensionTemplate[] = [GREASE, NAME, MASTER_SECRET, RENEGOTIATION];
const BEHIND_GROUPS: readonly ExtensionTemplate[] = [POINT_FORMATS, BROWSER_PROTOCOLS, STATUS_REQUEST];

export const SAFARI_26: HelloTemplate = {
  name: "Safari 26.3",
  since: "2026-02",
  suites: ["grease", 0x1302, 0x1303, 0x1301, ...OLDER_SUITES],
  extensions: [
    ...BEFORE_GROUPS,
    list16(10, "grease", 0x11ec, 0x1d, 0x17, 0x18, 0x19),
    ...BEHIND_GROUPS,
    list16(13, 0x0403, 0x0804, 0x0401, 0x0503, 0x0805, 0x0805, 0x0501, 0x0806, 0x0601, 0x0201),
    CERTIFICATE_TIMESTAMP,
    shares("grease", 0x11ec, 0x1d),
    KEY_EXCHANGE_MODES,
    list8(43, "grease", 0x0304, 0x0303),
    ZLIB,
    GREASE,
  ],
  isShuffled: false,
};

export const SAFARI_16: HelloTemplate = {
  name: "Safari 16.0",
  since: "2022-09",
  suites: ["grease", 0x1301, 0x1302, 0x1303, ...OLDER_SUITES],
  extensions: [
    ...BEFORE_GROUPS,
    GROUPS,
    ...BEHIND_GROUPS,
    OLD_SIGNATURES,
    CERTIFICATE_TIMESTAMP,
    shares("grease", 0x1d),
    KEY_EXCHANGE_MODES,
    OLD_VERSIONS,
    ZLIB,
    GREASE,
    PADDING,
  ],
  isShuffled: false,
};

export const IOS_14: HelloTemplate = {
  name: "iOS 14",
  since: "2020-09",
  suites: [
    "grease",
    0x1301,
    0x1302,
    0x1303,
    0xc02c,
    0xc02b,
    0xcca9,
    0xc030,
    0xc02f,
    0xcca8,
    0xc024,
    0xc023,
    0xc00a,
    0xc009,
    0xc028,
    0xc027,
    0xc014,
    0xc013,
    0x009d,
    0x009c,
    0x003d,
    0x003c,
    0x0035,
    0x002f,
    0xc008,
    0xc012,
    0x000a,
  ],
  extensions: [
    ...BEFORE_GROUPS,
    GROUPS,
    ...BEHIND_GROUPS,
    OLD_SIGNATURES,
    CERTIFICATE_TIMESTAMP,
    shares("grease", 0x1d),
    KEY_EXCHANGE_MODES,
    OLD_VERSIONS,
    GREASE,
    PADDING,
  ],
  isShuffled: false,
};
