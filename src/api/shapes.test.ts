import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import * as z from "zod";
import { cidr, jsonObject, queryInt, queryOf, statusRanges, word } from "./shapes.ts";

const body = jsonObject({ "Mixed-Port": z.int().optional(), tun: jsonObject({ mtu: z.int() }).optional() });

test("keys match in any case, the exact spelling wins, null is absent, unknown keys are dropped", () => {
  assert.deepEqual(body.parse({ "MIXED-port": 1, x: 2, tun: null }), { "Mixed-Port": 1 });
  assert.deepEqual(body.parse({ "mixed-port": 1, "Mixed-Port": 2, "MIXED-PORT": 3 }), { "Mixed-Port": 2 });
  assert.deepEqual(body.parse({ TUN: { MTU: 9 } }), { tun: { mtu: 9 } });
  for (const bad of [null, [], "x", 1, { tun: [] }, { tun: {} }, { "mixed-port": "1" }]) {
    assert.equal(body.safeParse(bad).success, false, JSON.stringify(bad));
  }
});

test("no body reaches a prototype", () => {
  const hostile: unknown = JSON.parse(
    '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}',
  );
  assert.deepEqual(body.parse(hostile), {});
  assert.equal(({} as { polluted?: number }).polluted, undefined);
});

test("any JSON is parsed or refused, never more", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const result = body.safeParse(value);
      if (result.success)
        assert.ok(Object.keys(result.data).every((key) => key === "Mixed-Port" || key === "tun"));
    }),
  );
});

test("of a repeated query key the first value counts", () => {
  const query = queryOf({ level: z.string() });
  assert.deepEqual(query.parse({ level: ["a", "b"], other: "c" }), { level: "a" });
});

test("numbers in queries are plain decimals", () => {
  const number = queryInt(-5, 100);
  for (const [text, value] of [
    ["7", 7],
    ["-5", -5],
    ["007", 7],
  ] as const) {
    assert.equal(number.parse(text), value);
  }
  for (const bad of ["", " 7", "7.0", "1e1", "0x7", "101", "-6", "+7", "9".repeat(17), "٧"]) {
    assert.equal(number.safeParse(bad).success, false, bad);
  }
});

test("words, prefixes and status ranges", () => {
  assert.equal(word(["gVisor", "System"]).parse("GVISOR"), "gVisor");
  assert.equal(word(["gVisor"]).safeParse("lwip").success, false);
  for (const good of ["10.0.0.0/8", "::/0", "2001:db8::1", "1.2.3.4/32"])
    assert.equal(cidr().parse(good), good);
  for (const bad of [
    "",
    "10.0.0.0/33",
    "::/129",
    "10.0.0/8",
    "a/8",
    "10.0.0.0/",
    "10.0.0.0/-1",
    "1.2.3.4/8/8",
  ]) {
    assert.equal(cidr().safeParse(bad).success, false, bad);
  }
  const ranges = statusRanges();
  assert.equal(ranges.parse("*"), null);
  assert.deepEqual(ranges.parse("200, 204/300-399"), [
    [200, 200],
    [204, 204],
    [300, 399],
  ]);
  for (const bad of ["abc", "200-", "-200", "200//204", "2xx"])
    assert.equal(ranges.safeParse(bad).success, false, bad);
});
