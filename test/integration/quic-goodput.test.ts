/** What congestion control makes of a way of 20 Mbit/s and 50 ms, on the clock of the network. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Bbr } from "#transport/quic/congestion/bbr.ts";
import { Brutal } from "#transport/quic/congestion/brutal.ts";
import { Cubic } from "#transport/quic/congestion/cubic.ts";
import { fairness, measureGoodput } from "../support/quic-goodput.ts";

const SKIP = process.platform === "linux" ? false : "SKIP libssl by FFI: only on Linux";
/** Bytes a millisecond. */
const RATE = 2500;
const WAY = { delayMs: 25, rate: RATE, queueBytes: RATE * 50 };
/** Headers and tags take 35 of 1,452 bytes. */
const PAYLOAD_SHARE = 1 - 35 / 1452;

describe("goodput of QUIC", { skip: SKIP }, () => {
  for (const loss of [0, 0.001, 0.01, 0.03])
    test(`BBR fills a way that loses ${loss * 100} of a hundred`, async () => {
      const up = { ...WAY, loss };
      const [rate = 0] = await measureGoodput({ up, flows: [() => new Bbr()], fromMs: 2000, ms: 8000 });
      assert.ok(rate > 0.93 * PAYLOAD_SHARE * (1 - loss) * RATE, `${rate} of ${RATE} bytes a millisecond`);
    });

  for (const loss of [0, 0.01, 0.05, 0.1])
    test(`Brutal keeps its rate where ${loss * 100} of a hundred are lost`, async () => {
      const wanted = 2000;
      const up = { ...WAY, loss };
      const flows = [() => new Brutal(wanted * 1000)];
      const [rate = 0] = await measureGoodput({ up, flows, fromMs: 6000, ms: 8000 });
      const share = rate / (wanted * PAYLOAD_SHARE);
      assert.ok(share > 0.98 && share < 1.02, `${share} of what was asked for`);
    });

  test("two flows of Cubic share the way", async () => {
    const flows = [() => new Cubic(), () => new Cubic()];
    const shares = await measureGoodput({ up: WAY, flows, fromMs: 10_000, ms: 30_000 });
    assert.ok(fairness(shares) >= 0.95, `${shares.join(" and ")} bytes a millisecond`);
    const sum = shares.reduce((total, share) => total + share, 0);
    assert.ok(sum > 0.9 * PAYLOAD_SHARE * RATE, `${sum} of ${RATE}`);
  });
});
