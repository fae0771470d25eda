import assert from "node:assert/strict";
import { duplexPair } from "node:stream";
import { test } from "node:test";
import { SILENT } from "#core/log.ts";
import type { DnsMode } from "#core/router.ts";
import type { Destination, Ip } from "#core/session.ts";
import { messageOf, tlsClientHello } from "../../../test/support/client-hello.ts";
import { metadataOf } from "../../../test/support/metadata.ts";
import { cryptoFrame, initialPacket } from "../../../test/support/quic-initial.ts";
import { SNIFF_PROTOCOLS } from "./index.ts";
import { SniffStage } from "./stage.ts";
import type { SniffPolicy } from "./stage.ts";

const ADDRESS = "203.0.113.9" as Ip;
const HELLO = await tlsClientHello("www.example.org");
const { signal } = new AbortController();
const PORTS = { HTTP: [{ from: 80, to: 80 }], TLS: [{ from: 443, to: 450 }], QUIC: [{ from: 443, to: 443 }] };

interface Setup extends Partial<SniffPolicy> {
  /** What is known of every destination. */
  readonly known?: { readonly host: string | null; readonly dnsMode: DnsMode };
}

function setUp({ known, ...policy }: Setup = {}) {
  let now = 0;
  const stage = new SniffStage(
    {
      protocols: SNIFF_PROTOCOLS.map((protocol) => ({
        protocol,
        ports: PORTS[protocol.type as keyof typeof PORTS],
        overridesDestination: protocol.type !== "HTTP",
      })),
      forceDnsMapping: true,
      parsePureIp: true,
      forcesNames: policy.isForced !== undefined,
      isForced: () => false,
      isSkipped: () => false,
      skipsSource: () => false,
      skipsDestination: () => false,
      ...policy,
    },
    {
      prepare: (destination) => ({
        destination: { ...destination, host: known?.host ?? destination.host },
        dnsMode: known?.dnsMode ?? "normal",
      }),
      log: SILENT,
      nowMs: () => now,
    },
  );
  return { stage, pass: (ms: number) => (now += ms) };
}

/** What is found in a stream that holds these bytes, and ends; null: not looked at. */
async function read(
  stage: SniffStage,
  bytes: Uint8Array,
  destination: Partial<Destination> = {},
  source = "127.0.0.1",
) {
  const [client, stream] = duplexPair();
  const replies: (Error | null)[] = [];
  const asked = metadataOf({ host: null, ip: ADDRESS, port: 443, ...destination });
  const metadata = { ...asked, source: { ...asked.source, ip: source as Ip } };
  client.end(bytes);
  const isWanted = stage.wants(metadata);
  const reading = stage.readStream(
    { network: "tcp", metadata, stream, reply: (failure) => void replies.push(failure) },
    signal,
  );
  assert.equal(isWanted, reading !== null);
  if (reading === null) return "not looked at";
  const found = await reading;
  assert.equal(stream.readableLength, bytes.length, "everything is put back");
  return found;
}

const FOUND = { host: "www.example.org", overridesDestination: true };

test("a pure address is looked at on the ports of each protocol", async () => {
  const { stage } = setUp();
  assert.deepEqual(await read(stage, HELLO), FOUND);
  assert.deepEqual(await read(stage, HELLO, { port: 450 }), FOUND);
  assert.equal(await read(stage, HELLO, { port: 451 }), "not looked at");
  assert.equal(await read(stage, HELLO, { port: 80 }), null);
  const request = Buffer.from("GET / HTTP/1.1\r\nHost: plain.example\r\n\r\n");
  const plain = { host: "plain.example", overridesDestination: false };
  assert.deepEqual(await read(stage, request, { port: 80 }), plain);
});

test("what is sniffed: parse-pure-ip, force-dns-mapping, force-domain", async () => {
  const mapped = { host: "mapped.example", dnsMode: "redir-host" } as const;
  const named = { host: "named.example", dnsMode: "normal" } as const;
  const faked = { host: "faked.example", dnsMode: "fake-ip" } as const;
  const isForced = (host: string) => host === "named.example";
  assert.equal(await read(setUp({ parsePureIp: false }).stage, HELLO), "not looked at");
  assert.deepEqual(await read(setUp({ known: mapped }).stage, HELLO), FOUND);
  assert.equal(await read(setUp({ known: mapped, forceDnsMapping: false }).stage, HELLO), "not looked at");
  assert.equal(await read(setUp({ known: named }).stage, HELLO), "not looked at");
  assert.equal(await read(setUp({ known: faked }).stage, HELLO), "not looked at");
  assert.deepEqual(await read(setUp({ known: named, isForced }).stage, HELLO), FOUND);
});

test("what is not: skip-src-address, skip-dst-address; names of skip-domain are thrown away", async () => {
  assert.equal(await read(setUp({ skipsSource: (ip) => ip === "127.0.0.1" }).stage, HELLO), "not looked at");
  assert.equal(await read(setUp({ skipsDestination: (ip) => ip === ADDRESS }).stage, HELLO), "not looked at");
  const { stage } = setUp({ isSkipped: (host) => host === "www.example.org" });
  for (let time = 0; time < 10; time++) assert.equal(await read(stage, HELLO), null);
});

test("more than five failures in a row stop it for that destination; one success starts over", async () => {
  const { stage, pass } = setUp();
  const ssh = Buffer.from("SSH-2.0-client\r\n");
  for (let time = 0; time < 5; time++) assert.equal(await read(stage, ssh), null);
  assert.deepEqual(await read(stage, HELLO), FOUND);
  for (let time = 0; time < 6; time++) assert.equal(await read(stage, ssh), null);
  assert.equal(await read(stage, HELLO), "not looked at");
  assert.deepEqual(await read(stage, HELLO, { port: 444 }), FOUND);
  pass(11 * 60_000);
  assert.deepEqual(await read(stage, HELLO), FOUND);
  const forced = setUp({ known: { host: "a.example", dnsMode: "normal" }, isForced: () => true }).stage;
  for (let time = 0; time < 8; time++) assert.equal(await read(forced, ssh), null);
});

test("the failures of one client switch nothing off for others", async () => {
  const { stage } = setUp();
  for (let time = 0; time < 6; time++) await read(stage, Buffer.from("SSH"), {}, "192.0.2.1");
  assert.equal(await read(stage, HELLO, {}, "192.0.2.1"), "not looked at");
  assert.deepEqual(await read(stage, HELLO, {}, "192.0.2.2"), FOUND);
});

test("the table of failures is bounded", async () => {
  const { stage } = setUp({
    protocols: [
      { protocol: SNIFF_PROTOCOLS[1]!, ports: [{ from: 0, to: 65_535 }], overridesDestination: true },
    ],
  });
  const ssh = Buffer.from("SSH");
  for (let time = 0; time < 6; time++) await read(stage, ssh, { port: 1 });
  assert.equal(await read(stage, HELLO, { port: 1 }), "not looked at");
  for (let port = 2; port < 4100; port++) await read(stage, ssh, { port });
  assert.deepEqual(await read(stage, HELLO, { port: 1 }), FOUND);
});

test("datagrams: at the first one where it tells, else with the next of the flight", async () => {
  const { stage } = setUp();
  const metadata = metadataOf({ host: null, ip: ADDRESS, port: 443 }, "udp");
  const hello = messageOf(HELLO);
  const watch = () => stage.watchDatagrams(metadata, signal)!;

  const other = watch();
  other.feed(Buffer.from("not QUIC"));
  assert.equal(await other.result, null);

  const whole = watch();
  whole.feed(initialPacket(cryptoFrame(0, hello)));
  assert.deepEqual(await whole.result, FOUND);

  const halves = watch();
  halves.feed(initialPacket(cryptoFrame(100, hello.subarray(100))));
  halves.feed(initialPacket(cryptoFrame(0, hello.subarray(0, 100)), { number: 1 }));
  halves.feed(Buffer.from("after the result"));
  assert.deepEqual(await halves.result, FOUND);

  const cut = watch();
  cut.feed(initialPacket(cryptoFrame(100, hello.subarray(100))));
  assert.equal(await cut.result, null, "the rest does not come");
  assert.equal(stage.watchDatagrams(metadataOf({ host: null, ip: ADDRESS, port: 53 }, "udp"), signal), null);
});
