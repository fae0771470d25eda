import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { amountText, parseAmount, parseRateLimit, rateLimitText } from "#ui/quantity.ts";

test("amounts and rates as people type them", () => {
  const amounts = { "": 0, "5000": 5000, "100 GiB": 107_374_182_400, "1TB": 1e12, "1.5 gib": 1_610_612_736 };
  for (const [text, bytes] of Object.entries(amounts)) assert.equal(parseAmount(text), bytes, text);
  const rates = { "20 Mbit/s": 20e6, "20M": 20e6, "256 k": 256_000, "64000": 64_000, "1 Gbps": 1e9, "0": 0 };
  for (const [text, bps] of Object.entries(rates)) assert.equal(parseRateLimit(text), bps, text);
  for (const text of ["x", "-1", "1 parsec", "1e9", "1 2", "99999999 PB", "."])
    assert.equal(parseAmount(text), null, text);
  assert.deepEqual([amountText(0), amountText(1e12), amountText(107_374_182_400)], ["", "1 TB", "100 GiB"]);
  assert.deepEqual(
    [rateLimitText(20e6), rateLimitText(256_000), rateLimitText(7)],
    ["20 Mbit/s", "256 kbit/s", "7 bit/s"],
  );
});

test("what is shown means the same when it is typed back", () => {
  fc.assert(
    fc.property(fc.nat({ max: Number.MAX_SAFE_INTEGER }), (value) => {
      assert.equal(parseAmount(amountText(value)), value);
      assert.equal(parseRateLimit(rateLimitText(value)), value);
    }),
    { examples: [[4_456_754_485_956_864]] },
  );
});
