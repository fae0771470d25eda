import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../../test/support/until.ts";
import { openCollection, openWholeCollection } from "./collection.ts";

const SKIP = process.platform === "linux" ? false : "SKIP collection by FFI: proven on Linux";
const BYTES = 64 * 1024 * 1024;

test("a collection is begun, and frees what lies outside of the heap as well", { skip: SKIP }, async () => {
  const collect = openCollection();
  assert.ok(collect !== null, "the runtime does not show its function any more");
  const before = process.memoryUsage().arrayBuffers;
  let bytes: Uint8Array | null = new Uint8Array(BYTES);
  assert.ok(process.memoryUsage().arrayBuffers >= before + bytes.length);
  bytes = null;
  collect();
  await until("it is freed", () => process.memoryUsage().arrayBuffers < before + BYTES);
});

test("a whole collection has ended when its call returns", { skip: SKIP }, () => {
  const collect = openWholeCollection();
  assert.ok(collect !== null, "the runtime does not show its function any more");
  const before = process.memoryUsage().heapUsed;
  let objects: object[] | null = Array.from({ length: 500_000 }, (_, at) => ({ at }));
  assert.equal(objects.length, 500_000);
  assert.ok(process.memoryUsage().heapUsed > before + 8 * 1024 * 1024);
  objects = null;
  collect();
  assert.ok(process.memoryUsage().heapUsed < before + 4 * 1024 * 1024);
});
