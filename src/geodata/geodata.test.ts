import assert from "node:assert/strict";
import { mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { ProtocolError } from "#core/errors.ts";
import { SILENT } from "#core/log.ts";
import type { Ip } from "#core/session.ts";
import { Slices } from "#core/slices.ts";
import { atOnce } from "#lib/steps.ts";
import { runs, skipLarge } from "../../test/support/runs.ts";
import { turnsDuring } from "../../test/support/turns.ts";
import { networksInSteps, sitesInSteps } from "./categories.ts";
import { DatFile } from "./dat-file.ts";
import { Geodata } from "./geodata.ts";

// A protocol buffer by hand: field number and wire type in one byte, then the length.
const field = (number: number, body: Uint8Array | string) => {
  const bytes = Buffer.from(body);
  return Buffer.concat([Buffer.of((number << 3) | 2), varint(bytes.length), bytes]);
};
const number = (at: number, value: number) => Buffer.concat([Buffer.of(at << 3), varint(value)]);
function varint(value: number): Buffer {
  return value < 128
    ? Buffer.of(value)
    : Buffer.concat([Buffer.of((value % 128) | 128), varint(Math.floor(value / 128))]);
}

const domain = (kind: number, value: string, ...attributes: readonly string[]) =>
  field(
    2,
    Buffer.concat([
      number(1, kind),
      field(2, value),
      ...attributes.map((key) => field(3, Buffer.concat([field(1, key), number(2, 1)]))),
    ]),
  );
const site = (name: string, ...domains: readonly Buffer[]) =>
  field(1, Buffer.concat([field(1, name), ...domains]));
const network = (bytes: readonly number[], bits: number) =>
  field(2, Buffer.concat([field(1, Uint8Array.from(bytes)), number(2, bits)]));

const SITES = Buffer.concat([
  site(
    "GOOGLE",
    domain(2, "Google.com"),
    domain(3, "exact.example", "cn"),
    domain(0, "keyword"),
    domain(1, "^re[0-9]+\\.example$"),
    domain(2, "ads.example", "ads", "cn"),
    domain(1, "(broken"),
  ),
  site("EMPTY"),
  site("CN", domain(2, "cn")),
]);
const compile = (source: string) => new RegExp(source);

async function withFolder(use: (folder: string) => void | Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "weir-geo-"));
  try {
    await use(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("GeoSite.dat: four kinds of entries, attributes wanted and unwanted, one category at a time", () =>
  withFolder((folder) => {
    writeFileSync(join(folder, "x.dat"), SITES);
    const file = DatFile.open(join(folder, "x.dat"));
    assert.deepEqual([...file.categories], ["google", "empty", "cn"]);
    const google = (...attributes: string[]) =>
      atOnce(sitesInSteps(file.read("google"), attributes, compile));
    const holds = (data: ReturnType<typeof google>) =>
      [
        "www.google.com",
        "exact.example",
        "x.exact.example",
        "a-keyword.b",
        "re12.example",
        "x.ads.example",
        "z",
      ].map((host) => data.match({ host }));
    assert.deepEqual(holds(google()), [true, true, false, true, true, true, false]);
    assert.deepEqual(holds(google("cn")), [false, true, false, false, false, true, false]);
    assert.deepEqual(holds(google("cn", "ads")), [false, false, false, false, false, true, false]);
    assert.deepEqual(holds(google("!cn")), [true, false, false, true, true, false, false]);
    assert.equal(google().size, 5, "the expression that cannot be compiled is left out");
    assert.equal(google().match({}), undefined);
    assert.deepEqual(file.read("nothing"), []);
  }));

test("GeoIP.dat: networks of both families; reverse_match turns the answer around", () => {
  const message = Buffer.concat([
    field(1, "XX"),
    network([10, 0, 0, 0], 8),
    network([0x20, 1, 0x0d, 0xb8, ...Array.from({ length: 12 }, () => 0)], 32),
  ]);
  const data = atOnce(networksInSteps([message]));
  assert.equal(data.match({ ip: "10.1.1.1" as Ip }), true);
  assert.equal(data.match({ ip: "2001:db8::1" as Ip }), true);
  assert.equal(data.match({ ip: "11.1.1.1" as Ip }), false);
  assert.equal(
    atOnce(networksInSteps([Buffer.concat([message, number(3, 1)])])).match({ ip: "11.1.1.1" as Ip }),
    true,
  );
  assert.throws(
    () => atOnce(networksInSteps([Buffer.concat([field(1, "XX"), network([10, 0, 0, 0], 33)])])),
    ProtocolError,
  );
});

test("damaged dat files are an error or another list, never a hang", () =>
  withFolder((folder) => {
    const path = join(folder, "x.dat");
    const look = (bytes: Buffer) => {
      writeFileSync(path, bytes);
      try {
        const file = DatFile.open(path);
        for (const name of file.categories) {
          atOnce(sitesInSteps(file.read(name), [], compile));
          atOnce(networksInSteps(file.read(name)));
        }
      } catch (error) {
        assert.ok(error instanceof ProtocolError, String(error));
      }
    };
    for (let length = 0; length < SITES.length; length++) look(SITES.subarray(0, length));
    fc.assert(
      fc.property(fc.nat(SITES.length - 1), fc.integer({ min: 0, max: 255 }), (at, byte) => {
        const changed = Buffer.from(SITES);
        changed[at] = byte;
        look(changed);
      }),
      { numRuns: runs(500) },
    );
  }));

test("files are found in any case; a missing one is logged once; a verified download is used when asked, a bad one is refused", () =>
  withFolder(async (folder) => {
    const warnings: string[] = [];
    const log = { ...SILENT, warning: (text: string | (() => string)) => void warnings.push(String(text)) };
    const urls = { geosite: "https://e.example/site", geoip: "https://e.example/ip", mmdb: "m", asn: "a" };
    const open = (previous: Geodata | null) =>
      new Geodata({ home: folder, geodataMode: true, urls, compile, slices: new Slices(), log }, previous);
    const missing = open(null);
    assert.equal(missing.geosite("google").match({ host: "google.com" }), false);
    missing.geosite("cn");
    assert.equal(warnings.length, 1);
    assert.match(
      warnings[0] as string,
      /GeoSite\.dat is not in .*geox-url\.geosite \(https:\/\/e\.example\/site\)/,
    );

    writeFileSync(join(folder, "geoSITE.dat"), SITES);
    const geodata = open(missing);
    const google = geodata.geosite("Google");
    assert.equal(google.match({ host: "google.com" }), true);
    assert.equal(geodata.geosite("unknown").match({ host: "google.com" }), false);
    assert.match(warnings.at(-1) as string, /no category unknown/);

    writeFileSync(join(folder, "next"), site("GOOGLE", domain(2, "other.example")));
    const use = await geodata.verify("geosite", join(folder, "next"));
    renameSync(join(folder, "next"), join(folder, "geoSITE.dat"));
    assert.equal(google.match({ host: "google.com" }), true, "until it is told");
    use(join(folder, "geoSITE.dat"));
    assert.equal(google.match({ host: "google.com" }), false);
    assert.equal(google.match({ host: "a.other.example" }), true);

    writeFileSync(join(folder, "next"), "<html>");
    await assert.rejects(geodata.verify("geosite", join(folder, "next")), ProtocolError);
    writeFileSync(join(folder, "next"), site("ELSE", domain(2, "x")));
    await assert.rejects(geodata.verify("geosite", join(folder, "next")), /lacks a category/);
    assert.equal(google.match({ host: "a.other.example" }), true, "the old stays in use");
  }));

test(
  "what was prepared is there when it is asked for, and the event loop turned meanwhile",
  { skip: skipLarge },
  () =>
    withFolder(async (folder) => {
      const names = Array.from({ length: 60_000 }, (_, at) => domain(2, `host${at}.example`));
      writeFileSync(join(folder, "GeoSite.dat"), Buffer.concat([site("BIG", ...names), SITES]));
      const warnings: string[] = [];
      const log = { ...SILENT, warning: (text: string | (() => string)) => void warnings.push(String(text)) };
      const urls = { geosite: "s", geoip: "i", mmdb: "m", asn: "a" };
      const env = { home: folder, geodataMode: true, urls, compile, slices: new Slices(), log };
      const geodata = new Geodata(env, null);
      const wanted = ["big", "google@cn", "missing"].map((key) => ({ kind: "geosite" as const, key }));
      const [, turns] = await turnsDuring(() => geodata.prepare(wanted));
      assert.ok(turns > 2, `${turns} turns`);
      assert.deepEqual(warnings, [], "what is missing is said where it is asked for");
      renameSync(join(folder, "GeoSite.dat"), join(folder, "gone"));
      assert.equal(
        geodata.geosite("BIG").match({ host: "www.host59999.example" }),
        true,
        "nothing is read any more",
      );
      assert.equal(geodata.geosite("google@cn").match({ host: "exact.example" }), true);
      assert.equal(geodata.geosite("missing").match({ host: "exact.example" }), false);
      assert.match(String(warnings), /no category missing/);
    }),
);

test("a link to nowhere is a file that cannot be used, and nothing more", () =>
  withFolder(async (home) => {
    symlinkSync(join(home, "not-mounted", "geosite.dat"), join(home, "GeoSite.dat"));
    const urls = { geosite: "s", geoip: "i", mmdb: "m", asn: "a" };
    const env = { home, geodataMode: true, urls, compile, slices: new Slices(), log: SILENT };
    const geodata = new Geodata(env, null);
    geodata.geosite("google");
    assert.deepEqual(geodata.pathOf("geosite"), { path: join(home, "GeoSite.dat"), changedAtMs: null });
    await assert.rejects(geodata.refuseStrange("geosite"), /is no regular file; it is not replaced/);
  }));
