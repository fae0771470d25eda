import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { SharedSalts } from "./shared-salts.ts";

test("a value is new once, until as many others have come as are remembered, and as many more", () => {
  const salts = new SharedSalts();
  const values = Array.from({ length: 140_000 }, () => randomBytes(16));
  for (const [at, value] of values.entries()) {
    assert.equal(salts.add(value), true);
    assert.equal(salts.add(value), false);
    const before = values[at - 32_767];
    if (at % 100 === 0 && before !== undefined) assert.equal(salts.add(before), false, `${at}`);
  }
  assert.equal(salts.add(values[0] as Buffer), true, "long ago");
});

test("of threads that see one value at a time, one is told that it is new", async () => {
  const salts = new SharedSalts();
  const values = randomBytes(16 * 4_000);
  const source = `
    import { parentPort, workerData } from "node:worker_threads";
    const { SharedSalts } = await import(workerData.module);
    const salts = new SharedSalts(workerData.memory);
    const gate = new Int32Array(workerData.gate);
    Atomics.add(gate, 0, 1);
    while (Atomics.load(gate, 0) < 2);
    const fresh = [];
    for (let at = 0; at < workerData.values.length; at += 16)
      if (salts.add(workerData.values.subarray(at, at + 16))) fresh.push(at);
    parentPort.postMessage(fresh);`;
  const module = new URL("./shared-salts.ts", import.meta.url).href;
  const gate = new SharedArrayBuffer(4);
  const workerData = { module, memory: salts.memory, gate, values };
  const threads = [1, 2].map(
    () => new Worker(new URL(`data:text/javascript,${encodeURIComponent(source)}`), { workerData }),
  );
  const seen = await Promise.all(
    threads.map(
      (thread) =>
        new Promise<number[]>((resolve, reject) => thread.once("message", resolve).once("error", reject)),
    ),
  );
  const all = seen.flat();
  assert.equal(all.length, 4_000);
  assert.equal(new Set(all).size, 4_000);
  await Promise.all(threads.map((thread) => thread.terminate()));
});
