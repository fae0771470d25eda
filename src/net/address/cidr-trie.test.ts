import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Ip } from "#core/session.ts";
import { runs, skipLarge } from "../../../test/support/runs.ts";
import { cidrHolds, parseCidr } from "./cidr.ts";
import type { Cidr } from "./cidr.ts";
import { CidrTable } from "./cidr-trie.ts";
import { ipFromBytes, parseIp } from "./ip.ts";
import { IpReader } from "./ip-reader.ts";

const cidr = (text: string) => parseCidr(text) as Cidr;
const ip = (text: string) => parseIp(text) as Ip;

/** Few distinct bits, so that networks nest and collide. */
const narrow = (bytes: number) =>
  fc
    .array(fc.constantFrom(0, 1, 128, 255), { minLength: bytes, maxLength: bytes })
    .map((b) => Uint8Array.from(b));
const address = fc.oneof(narrow(4), narrow(16));
const network = address.chain((bytes) =>
  fc
    .integer({ min: 0, max: bytes.length * 8 })
    .map((bits) =>
      cidr(`${ipFromBytes(bytes)}/${Math.min(bits, ipFromBytes(bytes).includes(":") ? 128 : 32)}`),
    ),
);

test("the tables agree with trying every network", () => {
  fc.assert(
    fc.property(
      fc.array(network, { maxLength: 40 }),
      address,
      fc.integer({ min: -1, max: 40 }),
      fc.array(fc.boolean(), { minLength: 40, maxLength: 40 }),
      (cidrs, raw, after, skipped) => {
        const text = ipFromBytes(raw);
        const bytes = text.includes(":") ? raw : raw.slice(-4);
        const skip = Uint8Array.from(skipped, Number);
        const table = new CidrTable(cidrs);
        const holding = cidrs.map((c, at) => (cidrHolds(c, bytes) ? at : -1)).filter((at) => at >= 0);
        const longest = holding.reduce(
          (best, at) => (best < 0 || (cidrs[at] as Cidr).bits > (cidrs[best] as Cidr).bits ? at : best),
          -1,
        );
        for (const form of [text, bytes]) {
          assert.equal(table.longest(form), longest);
          assert.equal(table.holds(form), holding.length > 0);
          assert.equal(
            table.lowest(form, after, skip),
            holding.find((at) => at > after && skip[at] === 0) ?? -1,
          );
        }
      },
    ),
    { numRuns: runs(500) },
  );
});

test("a table large enough for the jump agrees too", { skip: skipLarge }, () => {
  const byte = (at: number, factor: number) => (at * factor) & 0xff;
  const v4 = Array.from({ length: 4000 }, (_, at) =>
    cidr(`${byte(at, 7)}.${byte(at, 31)}.${byte(at, 3)}.0/${at % 33}`),
  );
  const v6 = Array.from({ length: 4000 }, (_, at) =>
    cidr(`20${byte(at, 7).toString(16)}:${at.toString(16)}::/${at % 129}`),
  );
  const cidrs = [...v4, ...v6];
  const table = new CidrTable(cidrs);
  for (let at = 0; at < 8000; at += 13) {
    const bytes = Uint8Array.from((cidrs[at] as Cidr).bytes, (value, place) =>
      place === (at & 3) ? value ^ (at & 1) : value,
    );
    const holding = cidrs.map((c, place) => (cidrHolds(c, bytes) ? place : -1)).filter((place) => place >= 0);
    assert.equal(table.lowest(bytes), holding[0] ?? -1);
    assert.equal(table.lowest(ipFromBytes(bytes), at), holding.find((place) => place > at) ?? -1);
    const bits = holding.map((place) => (cidrs[place] as Cidr).bits);
    assert.equal((cidrs[table.longest(bytes)] as Cidr).bits, Math.max(...bits));
  }
});

test("text is read as the parser reads it", () => {
  const reader = new IpReader();
  fc.assert(
    fc.property(fc.oneof(address, fc.uint8Array({ minLength: 16, maxLength: 16 })), (raw) => {
      const text = ipFromBytes(raw);
      const family = reader.read(text);
      const bytes = family === 4 ? raw.slice(-4) : raw;
      const words = [...reader.words];
      assert.equal(reader.readBytes(bytes), family);
      assert.deepEqual(
        words.slice(0, family === 4 ? 1 : 4),
        [...reader.words].slice(0, family === 4 ? 1 : 4),
      );
    }),
  );
  for (const bad of [
    "",
    "1.2.3",
    "1.2.3.256",
    "1.2.3.4.5",
    "a.b",
    ":",
    "1::2:3:4:5:6:7:8:9",
    "1:2",
    "12345::",
    "g::",
  ])
    assert.equal(reader.read(bad), 0, bad);
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(":", ".", "1", "f"), maxLength: 60 }), (text) => {
      reader.read(text);
    }),
  );
});

test("the longest answers, the first of two equal ones counts", () => {
  const texts = ["0.0.0.0/0", "10.0.0.0/8", "10.1.0.0/16", "10.0.0.0/8", "fd00::/8"];
  const table = new CidrTable(texts.map(cidr));
  assert.equal(table.longest(ip("10.1.2.3")), 2);
  assert.equal(table.longest(ip("10.2.0.1")), 1);
  assert.equal(table.longest(ip("8.8.8.8")), 0);
  assert.equal(table.longest(ip("fd12::1")), 4);
  assert.equal(table.longest(ip("2001:db8::1")), -1);
  assert.equal(table.holds(Uint8Array.of(10, 0, 0, 1)), true);
  assert.equal(table.size, 5);
  assert.equal(new CidrTable([]).longest(ip("::1")), -1);
});
