/** The lists that users download: the same in all forms, and databases with known and with hostile contents. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ProtocolError } from "#core/errors.ts";
import type { Ip } from "#core/session.ts";
import { openCountries, openSystems } from "#net/address/address-records.ts";
import { networksInSteps, sitesInSteps } from "#geodata/categories.ts";
import { DatFile } from "#geodata/dat-file.ts";
import { Mmdb } from "#net/address/mmdb.ts";
import { parseCidr } from "#net/address/cidr.ts";
import { bytesOfIp, ipFromBytes, parseIp } from "#net/address/ip.ts";
import { convertRuleSet } from "#providers/rule-set/convert.ts";
import { itemsOf, readRuleSet, type Behavior, type Format } from "#providers/rule-set/read.ts";
import { conditionsInSteps } from "#router/condition-list.ts";
import { compileLinear } from "#router/linear-pattern.ts";
import { atOnce } from "#lib/steps.ts";
import { noRealData, REAL_DATA } from "../support/real-data.ts";

const skip = noRealData;
const NAMES = 100_000;

const bytesOf = (file: string) => readFileSync(join(REAL_DATA, file));
/** Of a database of records; throws `ProtocolError` where it is damaged anywhere. */
const verified = (file: string) => {
  const bytes = bytesOf(file);
  new Mmdb(bytes).verify();
  return bytes;
};
const NO_SCOPE = {
  ruleSet: () => null,
  geosite: () => null,
  geoip: () => null,
  asn: () => null,
  inboundTypes: new Set<string>(),
};
const classical = (lines: readonly string[]) => ({
  data: atOnce(conditionsInSteps(lines, NO_SCOPE, (line, why) => assert.fail(`${line}: ${why}`))),
  skipped: { count: 0, first: "" },
});
const load = async (bytes: Uint8Array, behavior: Behavior, format: Format) =>
  (await readRuleSet(bytes, { behavior, format }, classical)).data;

/** The list as text, YAML, MRS, and what convert-ruleset makes of the text. */
async function allForms(name: string, behavior: Behavior) {
  const converted = await convertRuleSet(bytesOf(`${name}.list`), behavior, "text");
  return Promise.all([
    load(bytesOf(`${name}.list`), behavior, "text"),
    load(bytesOf(`${name}.yaml`), behavior, "yaml"),
    load(bytesOf(`${name}.mrs`), behavior, "mrs"),
    load(converted.bytes, behavior, "mrs"),
  ]);
}

/** A small generator of our own, so that a failure can be seen again. */
function generator(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 0x1_0000_0000) * below);
  };
}

/** Names that are in the list, below it, above it, beside it, and nowhere. */
function randomName(entries: readonly string[], random: (below: number) => number): string {
  const entry = (entries[random(entries.length)] as string).replace(/^\+?\./, "");
  const labels = entry.split(".");
  const label = random(0x1_0000_0000).toString(36);
  const shapes = [
    entry,
    `www.${entry}`,
    `${label}.${label}.${entry}`,
    `${label}${entry}`,
    labels.slice(1).join(".") || label,
    `${label}.${labels.slice(1).join(".") || "example"}`,
    `${label}.example`,
  ];
  return shapes[random(shapes.length)] as string;
}

for (const [name, names] of [
  ["geosite/cn", NAMES],
  ["geosite/geolocation-!cn", 20_000],
  ["geosite/private", 20_000],
] as const)
  test(
    `${name}: every entry matches in all forms, and ${names} random names get one verdict`,
    { skip },
    async () => {
      const forms = await allForms(name, "domain");
      const entries = itemsOf(bytesOf(`${name}.list`), "text");
      assert.deepEqual(new Set(forms.map(({ size }) => size)), new Set([entries.length]));
      for (const entry of entries) {
        const host = entry.replace(/^\+\./, "").replace(/^\./, "below.");
        for (const form of forms) assert.equal(form.match({ host }), true, entry);
      }
      const random = generator(1);
      let hits = 0;
      for (let left = names; left > 0; left--) {
        const host = randomName(entries, random);
        const verdicts = forms.map((form) => form.match({ host }));
        assert.equal(new Set(verdicts).size, 1, `${host}: ${verdicts.join()}`);
        if (verdicts[0] === true) hits++;
      }
      assert.ok(hits > names / 10 && hits < names, `${hits} hits: both verdicts must have been seen`);
    },
  );

for (const name of ["geoip/cn", "geoip/google", "geoip/private"])
  test(`${name}: first and last address of every network match in all forms`, { skip }, async () => {
    const forms = await allForms(name, "ipcidr");
    const random = generator(2);
    for (const entry of itemsOf(bytesOf(`${name}.list`), "text")) {
      const { bytes, bits } = parseCidr(entry) as NonNullable<ReturnType<typeof parseCidr>>;
      const last = bytes.map((byte, at) => byte | (0xff >> Math.max(0, Math.min(8, bits - at * 8))));
      const beside = Uint8Array.from(bytes, () => random(256));
      for (const [address, inside] of [
        [bytes, true],
        [last, true],
        [beside, null],
      ] as const) {
        const verdicts = new Set(forms.map((form) => form.match({ ip: ipFromBytes(address) })));
        assert.equal(verdicts.size, 1, entry);
        if (inside !== null) assert.ok(verdicts.has(inside), entry);
      }
    }
  });

test("classical lists in both forms match what the domain form matches", { skip }, async () => {
  const text = await load(bytesOf("geosite/category-ads-all.classical.list"), "classical", "text");
  const yaml = await load(bytesOf("geosite/category-ads-all.classical.yaml"), "classical", "yaml");
  const domain = await load(bytesOf("geosite/category-ads-all.mrs"), "domain", "mrs");
  assert.equal(text.size, yaml.size);
  const entries = itemsOf(bytesOf("geosite/category-ads-all.list"), "text");
  const random = generator(3);
  for (let left = 5000; left > 0; left--) {
    const host = randomName(entries, random);
    assert.equal(text.match({ host }), yaml.match({ host }), host);
    if (domain.match({ host }) === true) assert.equal(text.match({ host }), true, host);
  }
});

test("geodat: every category of the dat files and both kinds of country database", { skip }, () => {
  const sites = DatFile.open(join(REAL_DATA, "geodat/geosite-lite.dat"));
  const google = atOnce(sitesInSteps(sites.read("google"), [], compileLinear));
  assert.equal(google.match({ host: "www.google.com" }), true);
  assert.equal(google.match({ host: "www.example.org" }), false);
  assert.ok(
    [...sites.categories].every((name) => atOnce(sitesInSteps(sites.read(name), [], compileLinear)).size > 0),
  );

  const networks = DatFile.open(join(REAL_DATA, "geodat/geoip-lite.dat"));
  const ofCountry = openCountries(bytesOf("geodat/country-lite.mmdb"));
  const ofMeta = openCountries(bytesOf("geodat/geoip-lite.metadb"));
  for (const [address, code] of [
    ["1.1.1.1", "cloudflare"],
    ["8.8.8.8", "google"],
    ["223.5.5.5", "cn"],
    ["2001:4860:4860::8888", "google"],
  ] as const) {
    const ip = parseIp(address) as Ip;
    assert.deepEqual(ofCountry(bytesOfIp(ip)), [code]);
    assert.deepEqual(ofMeta(bytesOfIp(ip)), [code]);
    assert.equal(atOnce(networksInSteps(networks.read(code))).match({ ip }), true, `${address} in ${code}`);
  }
});

test("databases of known contents", { skip }, () => {
  const country = openCountries(bytesOf("mmdb/GeoLite2-Country-Test.mmdb"));
  assert.deepEqual(country(bytesOfIp("2.125.160.216" as Ip)), ["gb"]);
  const systemOf = openSystems(bytesOf("mmdb/GeoLite2-ASN-Test.mmdb"));
  assert.deepEqual(systemOf(bytesOfIp("1.128.0.1" as Ip)), { number: 1221, owner: "Telstra Pty Ltd" });
  assert.throws(() => openSystems(bytesOf("mmdb/GeoLite2-Country-Test.mmdb")), /holds no AS numbers/);
  const decoder = new Mmdb(bytesOf("mmdb/MaxMind-DB-test-decoder.mmdb"));
  const record = decoder.lookup(bytesOfIp("1.1.1.0" as Ip)) as ReadonlyMap<string, unknown>;
  assert.equal(record.get("utf8_string"), "unicode! ☯ - ♫");
  assert.equal(record.get("uint128"), 1n << 120n);
  assert.equal(record.get("int32"), -(2 ** 28));
  assert.equal(record.get("double"), 42.123456);
  for (const file of ["ipv4-24", "ipv6-28", "mixed-32"])
    new Mmdb(bytesOf(`mmdb/MaxMind-DB-test-${file}.mmdb`)).verify();
});

test("hostile and broken databases cost an error each", { skip }, () => {
  const bad = readdirSync(join(REAL_DATA, "mmdb-bad")).map((name) => `mmdb-bad/${name}`);
  const broken = ["broken-pointers-24", "broken-search-tree-24"].map(
    (name) => `mmdb/MaxMind-DB-test-${name}.mmdb`,
  );
  assert.equal(bad.length, 21);
  for (const file of [...bad, ...broken, "mmdb/GeoIP2-City-Test-Invalid-Node-Count.mmdb"]) {
    assert.throws(() => openCountries(verified(file)), ProtocolError, file);
    assert.throws(() => openSystems(verified(file)), ProtocolError, file);
  }
});

test("a lookup in a damaged database answers or throws, whatever byte is wrong", { skip }, () => {
  const whole = bytesOf("mmdb/MaxMind-DB-test-mixed-32.mmdb");
  const random = generator(4);
  const addresses = ["1.1.1.1", "255.255.255.255", "::1:ffff:ffff", "2001::1"].map((text) =>
    bytesOfIp(text as Ip),
  );
  const look = (bytes: Buffer) => {
    try {
      const database = new Mmdb(bytes);
      for (const address of addresses) database.lookup(address);
      database.verify();
    } catch (error) {
      assert.ok(error instanceof ProtocolError, String(error));
    }
  };
  for (let left = 3000; left > 0; left--) {
    const bytes = Buffer.from(whole);
    for (let flips = 1 + random(3); flips > 0; flips--) bytes[random(bytes.length)] = random(256);
    look(bytes);
  }
  for (let length = 0; length < whole.length; length += 7) look(whole.subarray(0, length));
});
