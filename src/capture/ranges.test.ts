import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Prefix } from "#core/capture.ts";
import { cidrHolds, cidrText, parseCidr } from "#net/address/cidr.ts";
import {
  everything,
  maskedPrefix,
  prefixesOf,
  rangesOf,
  rangeText,
  rangeTexts4,
  subtract,
} from "./ranges.ts";
import type { Ip } from "#core/session.ts";

const prefixes = (...texts: readonly string[]): readonly Prefix[] =>
  texts.map((text) => parseCidr(text) as Prefix);
const texts = (list: readonly Prefix[]) => list.map((prefix) => cidrText(prefix));

test("overlapping and neighbouring prefixes are one range", () => {
  const merged = rangesOf(prefixes("10.0.0.0/9", "10.128.0.0/9", "10.1.2.3/32", "fd00::/8", "11.0.0.1"), 4);
  assert.deepEqual(
    merged.map((range) => rangeText(range, 4)),
    ["10.0.0.0-10.255.255.255", "11.0.0.1"],
  );
  assert.deepEqual(
    rangesOf(prefixes("fd00::/8", "1.2.3.4"), 6).map((range) => rangeText(range, 6)),
    ["fd00::-fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  );
});

test("everything without some networks is the fewest prefixes around them", () => {
  const left = subtract(everything(4), rangesOf(prefixes("128.0.0.0/1", "0.0.0.0/3"), 4));
  assert.deepEqual(texts(prefixesOf(left, 4)), ["32.0.0.0/3", "64.0.0.0/2"]);
  assert.deepEqual(texts(prefixesOf(everything(6), 6)), ["::/0"]);
  assert.deepEqual(prefixesOf(subtract(everything(6), everything(6)), 6), []);
});

test("host bits go", () => {
  assert.deepEqual(texts([maskedPrefix({ ip: "198.18.0.1" as Ip, bits: 30 })]), ["198.18.0.0/30"]);
});

const prefix4 = fc
  .tuple(fc.uint8Array({ minLength: 4, maxLength: 4 }), fc.integer({ min: 0, max: 32 }))
  .map(([bytes, bits]) => parseCidr(`${bytes.join(".")}/${bits}`) as Prefix);

test("an address is left exactly where it was and nothing took it away", () => {
  fc.assert(
    fc.property(
      fc.array(prefix4, { maxLength: 12 }),
      fc.array(prefix4, { maxLength: 12 }),
      fc.array(fc.uint8Array({ minLength: 4, maxLength: 4 }), { minLength: 20, maxLength: 20 }),
      (from, without, probes) => {
        const left = prefixesOf(subtract(rangesOf(from, 4), rangesOf(without, 4)), 4);
        for (const probe of [...probes, ...[...from, ...without].map(({ bytes }) => bytes)]) {
          const holds = (list: readonly Prefix[]) => list.some((prefix) => cidrHolds(prefix, probe));
          assert.equal(holds(left), holds(from) && !holds(without));
        }
      },
    ),
  );
});

test("ranges in plain numbers are the same ranges", () => {
  fc.assert(
    fc.property(fc.array(prefix4, { maxLength: 30 }), (list) => {
      assert.deepEqual(
        rangeTexts4(list),
        rangesOf(list, 4).map((range) => rangeText(range, 4)),
      );
    }),
  );
});
