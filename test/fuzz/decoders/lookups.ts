/** What is looked at rather than carried: first bytes of clients, DNS, downloaded lists and databases. */
import { openPacket } from "#dns/packet.ts";
import { decodeMessage, encodeMessage } from "#dns/message.ts";
import { FrameReader, frameOf } from "#dns/frames.ts";
import { encodeQuestion, QueryReader } from "#dns/query.ts";
import { openCountries, openSystems } from "#net/address/address-records.ts";
import { networksInSteps, sitesInSteps } from "#geodata/categories.ts";
import { Mmdb } from "#net/address/mmdb.ts";
import { decodeMrsBody } from "#providers/rule-set/mrs.ts";
import { SNIFF_PROTOCOLS } from "#router/sniff/index.ts";
import { atOnce } from "#lib/steps.ts";
import { cryptoFrame, initialPacket } from "../../support/quic-initial.ts";
import { inRecords } from "../../support/client-hello.ts";
import { once, type Target } from "./kinds.ts";

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");

// ClientHello (RFC 8446 §4.1.2): version, random, no session, one cipher, no compression, server_name "a.test".
const HELLO = Buffer.concat([
  hex("01 00003a 0303"),
  Buffer.alloc(32, 7),
  hex("00 0002 1301 01 00 000f 0000 000b 0009 00 0006 612e74657374"),
]);

const SNIFFED: Readonly<Record<string, readonly Buffer[]>> = {
  HTTP: [Buffer.from("GET / HTTP/1.1\r\nAccept: */*\r\nHost: a.test:80\r\n\r\n")],
  TLS: [inRecords(HELLO, HELLO.length), inRecords(HELLO, 7)],
  QUIC: [initialPacket(Buffer.concat([cryptoFrame(0, HELLO), Buffer.alloc(1100)]))],
};

const sniffTargets = SNIFF_PROTOCOLS.map(({ type, open }): Target => ({
  name: `sniffing ${type}`,
  seeds: SNIFFED[type] ?? [],
  run(pieces) {
    const probe = open();
    for (const piece of pieces) if (probe.feed(piece) !== "more") return;
  },
}));

const QUERY = Buffer.from(encodeQuestion("www.example.org", 1));
const ANSWER = Buffer.from(
  encodeMessage({
    ...decodeMessage(QUERY),
    answers: [{ name: "www.example.org", type: 1, class: 1, ttl: 60, data: hex("c0000201") }],
  }),
);

const dnsTargets: readonly Target[] = [
  once("DNS message", [QUERY, ANSWER], decodeMessage),
  once("DNS answer in place", [ANSWER], openPacket),
  once("DNS query", [QUERY], (bytes) => new QueryReader().read(bytes)),
  {
    name: "DNS frames",
    seeds: [Buffer.concat([frameOf(QUERY), frameOf(ANSWER)])],
    run(pieces) {
      const reader = new FrameReader((message) => void decodeMessage(message));
      for (const piece of pieces) reader.push(piece);
    },
  },
];

// MRS body: magic, behaviour, counts, then the tree or the ranges; here 10.0.0.0/8 as a range.
const RANGES = hex(
  "4d525301 01 0000000000000001 0000000000000000 01 0000000000000001" +
    "00000000000000000000ffff0a000000 00000000000000000000ffff0affffff",
);

const text = (value: string): Buffer => Buffer.concat([Buffer.of(0x40 | value.length), Buffer.from(value)]);
const pair = (key: string, value: Buffer): Buffer => Buffer.concat([text(key), value]);

/** One node; addresses that begin with 0 lead to a record with a country and an AS number. */
export const DATABASE = Buffer.concat([
  hex("000011 000001"), // 1 node + 16 + offset 0; nothing
  Buffer.alloc(16),
  hex("e2"),
  pair("country", Buffer.concat([hex("e1"), pair("iso_code", text("XX"))])),
  pair("autonomous_system_number", hex("c2 fde8")),
  Buffer.from("\xab\xcd\xefMaxMind.com", "latin1"),
  hex("e5"),
  pair("binary_format_major_version", hex("a1 02")),
  pair("node_count", hex("c1 01")),
  pair("record_size", hex("a1 18")),
  pair("ip_version", hex("a1 04")),
  pair("database_type", text("x")),
]);
const ADDRESSES = [hex("01020304"), hex("ff000001"), Buffer.alloc(16, 1)];

const field = (number: number, body: Buffer): Buffer =>
  Buffer.concat([Buffer.of((number << 3) | 2, body.length), body]);
const SITE = Buffer.concat([
  field(1, Buffer.from("CN")),
  field(
    2,
    Buffer.concat([hex("08 02"), field(2, Buffer.from("a.test")), field(3, field(1, Buffer.from("ads")))]),
  ),
  field(2, Buffer.concat([hex("08 01"), field(2, Buffer.from("^a+$"))])),
]);
const NETWORKS = Buffer.concat([field(1, Buffer.from("XX")), field(2, hex("0a 04 0a000000 10 08"))]);
const noPattern = (): { test(host: string): boolean } => ({ test: () => false });

const fileTargets: readonly Target[] = [
  once("MRS", [RANGES], decodeMrsBody),
  once("MMDB", [DATABASE], (bytes) => {
    const database = new Mmdb(bytes);
    for (const address of ADDRESSES) database.lookup(address);
    database.verify();
  }),
  once("MMDB countries and AS numbers", [DATABASE], (bytes) => {
    const [countries, systems] = [openCountries(bytes), openSystems(bytes)];
    for (const address of ADDRESSES) void [countries(address), systems(address)];
  }),
  once("geosite category", [SITE], (bytes) => atOnce(sitesInSteps([bytes], [], noPattern))),
  once("geoip category", [NETWORKS], (bytes) => atOnce(networksInSteps([bytes]))),
];

export const lookupTargets: readonly Target[] = [...sniffTargets, ...dnsTargets, ...fileTargets];
