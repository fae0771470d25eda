import assert from "node:assert/strict";
import { test } from "node:test";
import type { Ip } from "#core/session.ts";
import { LiveTable } from "#dataplane/connections.ts";
import { metadataOf } from "../support/metadata.ts";

const somewhere = { host: null, ip: "192.0.2.1" as Ip, port: 443 };

test("a row is seen until it is disposed of; totals only grow", () => {
  const table = new LiveTable();
  {
    using entry = table.open(metadataOf(somewhere));
    entry.count("upload", 10);
    entry.count("download", 300);
    assert.deepEqual([...table], [entry]);
    assert.deepEqual([entry.uploadBytes, entry.downloadBytes], [10, 300]);
  }
  assert.equal(table.size, 0);
  assert.deepEqual([table.uploadTotalBytes, table.downloadTotalBytes], [10, 300]);
});

test("closing aborts, by id, by predicate, all", () => {
  const table = new LiveTable();
  const entries = Array.from({ length: 5_000 }, () => table.open(metadataOf(somewhere)));
  const [first, second] = entries as [(typeof entries)[0], (typeof entries)[0]];
  first.signal.addEventListener("abort", () => first[Symbol.dispose]());
  assert.ok(table.close(first.metadata.id));
  assert.ok(first.signal.aborted);
  assert.equal(table.size, 4_999);
  assert.ok(!table.close(first.metadata.id));
  assert.equal(
    table.closeAll(({ metadata }) => metadata.id === second.metadata.id),
    1,
  );
  assert.equal(table.closeAll(), 4_999);
  assert.ok(entries.every((entry) => entry.signal.aborted));
});

test("the thousandth connection that has ended is told of, and no other", () => {
  let told = 0;
  const table = new LiveTable({ look() {}, beforeRead() {}, onMany: () => told++ });
  const some = (count: number): void => {
    for (let at = 0; at < count; at++) table.open(metadataOf(somewhere))[Symbol.dispose]();
  };
  some(999);
  assert.equal(told, 0);
  some(1);
  assert.equal(told, 1);
  some(5_000);
  assert.equal(told, 1);
});
