/** Limits on real sockets, measured loosely; `npm run bench governance` measures strictly. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { startGoverned } from "../support/governed-core.ts";

const SECONDS = 3;

for (const flows of [1, 16])
  test(`§11.2 10 Mbit/s for ${flows} downloads together, in equal shares`, async () => {
    await using governed = await startGoverned("  enabled: true\n  global: { download-bps: 10000000 }");
    const moved = Array.from({ length: flows }, () => 0);
    for (let at = 0; at < flows; at++) {
      const socket = await governed.open(Number.MAX_SAFE_INTEGER);
      socket.on("error", () => {}); // the core ends first
      socket.on("data", (chunk: Buffer) => (moved[at] = (moved[at] as number) + chunk.length));
    }
    const total = () => moved.reduce((a, b) => a + b);
    const before = total();
    const startedMs = performance.now();
    await new Promise((done) => setTimeout(done, SECONDS * 1000));
    const wanted = (10e6 * (performance.now() - startedMs)) / 8000;
    const off = (total() - before) / wanted - 1;
    assert.ok(Math.abs(off) < 0.25, `${(off * 100).toFixed(1)} % off`);
    const jain = total() ** 2 / (flows * moved.reduce((sum, one) => sum + one * one, 0));
    assert.ok(jain > 0.9, `Jain ${jain}`);
  });
