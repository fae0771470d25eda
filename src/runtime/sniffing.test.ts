import assert from "node:assert/strict";
import { duplexPair } from "node:stream";
import { test } from "node:test";
import type { SnifferOptions } from "#config/sniffer-build.ts";
import { SILENT } from "#core/log.ts";
import type { RuleData } from "#core/rule.ts";
import type { Destination, Ip } from "#core/session.ts";
import type { Prepared } from "#dns/prepare.ts";
import type { Sniffed } from "#core/sniffer.ts";
import { parseCidr, type Cidr } from "#net/address/cidr.ts";
import { tlsClientHello } from "../../test/support/client-hello.ts";
import { metadataOf } from "../../test/support/metadata.ts";
import { EMPTY_SCOPE } from "../../test/support/routing.ts";
import { openSniffer, routable } from "./sniffing.ts";

const ADDRESS = "203.0.113.9" as Ip;
const at = (host: string | null, ip: Ip | null) => ({ host, ip, port: 443 });
const plain = (host: string | null, ip: Ip | null): Prepared => ({
  destination: at(host, ip),
  dial: at(host, ip),
  dnsMode: "redir-host",
  refusal: null,
});
const name = (overridesDestination: boolean) => ({ host: "sniffed.example", overridesDestination });

/** What is known of the asked destination is `known`; other names are in no table. */
const routed = (known: Prepared, sniffed: Sniffed | null) =>
  routable(known.destination, sniffed, (destination) =>
    destination === known.destination
      ? known
      : { destination, dial: destination, dnsMode: "normal", refusal: null },
  );

test("without a name nothing changes, and an unknown fake address is refused", () => {
  assert.deepEqual(routed(plain("a.example", ADDRESS), null), {
    destination: at("a.example", ADDRESS),
    dial: at("a.example", ADDRESS),
    dnsMode: "redir-host",
  });
  const lost: Prepared = {
    ...plain(null, "198.18.9.9" as Ip),
    refusal: "fake DNS record 198.18.9.9 missing",
  };
  assert.throws(() => routed(lost, null), { code: "DIAL", reason: "resolve", message: /fake DNS record/ });
  for (const overrides of [true, false])
    assert.deepEqual(routed(lost, name(overrides)), {
      destination: at("sniffed.example", null),
      dial: at("sniffed.example", null),
      dnsMode: "normal",
      sniffedHost: "sniffed.example",
      host: "sniffed.example",
    });
});

test("rules read the name and the address that was asked for; the dial takes the name where it overrides", () => {
  const rulesSee = {
    dnsMode: "normal",
    sniffedHost: "sniffed.example",
    host: "sniffed.example",
    ip: ADDRESS,
  };
  assert.deepEqual(routed(plain("a.example", ADDRESS), name(true)), {
    destination: at("sniffed.example", null),
    dial: at("sniffed.example", null),
    ...rulesSee,
  });
  for (const asked of [plain("a.example", ADDRESS), plain(null, ADDRESS)])
    assert.deepEqual(routed(asked, name(false)), {
      destination: asked.destination,
      dial: asked.dial,
      ...rulesSee,
    });
});

test("a sniffed name that hosts knows is dialled at its address there, and address rules read that", () => {
  const pinned = "203.0.113.77" as Ip;
  const prepare = (destination: Destination): Prepared =>
    destination.host === null
      ? plain(null, ADDRESS)
      : { ...plain(null, pinned), destination: { ...destination, ip: pinned } };
  const { destination, dial, ip } = routable(at(null, ADDRESS), name(true), prepare);
  assert.deepEqual([destination, dial, ip], [at("sniffed.example", pinned), at(null, pinned), pinned]);
});

const OPTIONS: SnifferOptions = {
  enable: true,
  sniff: [{ protocol: "TLS", ports: [{ from: 443, to: 443 }], overrideDestination: true }],
  forceDnsMapping: true,
  parsePureIp: true,
  forceDomain: [],
  skipDomain: [],
  skipSrcAddress: [],
  skipDstAddress: [],
};

test("off, or with nothing listed, there is no sniffer at all", () => {
  const env = { names: { prepare: () => plain(null, ADDRESS) }, scope: EMPTY_SCOPE, log: SILENT };
  assert.equal(openSniffer({ ...OPTIONS, enable: false }, env), null);
  assert.equal(openSniffer({ ...OPTIONS, sniff: [] }, env), null);
});

test("skip lists: networks, countries, rule sets, private addresses", async () => {
  const hello = await tlsClientHello("sniffed.example");
  const holding = (ip: string): RuleData => ({ size: 1, reads: ["ip"], match: (facts) => facts.ip === ip });
  const sniffer = openSniffer(
    {
      ...OPTIONS,
      skipDstAddress: [
        { kind: "cidr", cidr: parseCidr("198.51.100.0/24") as Cidr },
        { kind: "geoip", code: "cn" },
        { kind: "rule-set", name: "mine" },
      ],
      skipSrcAddress: [{ kind: "geoip", code: "lan" }],
    },
    {
      names: {
        prepare: (destination) => ({ destination, dial: destination, dnsMode: "normal", refusal: null }),
      },
      scope: {
        ...EMPTY_SCOPE,
        geoip: (code) => (code === "cn" ? holding("192.0.2.1") : null),
        ruleSet: (set) => (set === "mine" ? holding("192.0.2.2") : null),
      },
      log: SILENT,
    },
  );
  const look = (ip: string, source = "192.0.2.200") => {
    const [client, stream] = duplexPair();
    client.write(hello);
    const metadata = { ...metadataOf(at(null, ip as Ip)), source: { ip: source as Ip, port: 1 } };
    return sniffer?.readStream(
      { network: "tcp", metadata, stream, reply() {} },
      new AbortController().signal,
    );
  };
  for (const ip of ["198.51.100.7", "192.0.2.1", "192.0.2.2"]) assert.equal(look(ip), null, ip);
  assert.equal(look(ADDRESS, "10.0.0.3"), null);
  for (const ip of [ADDRESS, "10.1.1.1"]) assert.deepEqual(await look(ip), name(true));
});
