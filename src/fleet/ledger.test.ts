import assert from "node:assert/strict";
import { test } from "node:test";
import { StoreError } from "#core/errors.ts";
import type { Change } from "#store/kv.ts";
import { Ledger, type Moved } from "./ledger.ts";

const HOUR_MS = 3_600_000;
const moved = (user: string, upload: number, atMs = 1000): Moved => ({
  user,
  generation: 1,
  atMs,
  steadyMs: atMs,
  seconds: 1,
  upload,
  download: 0,
});

/** The records of a state file that was told all of this. */
function fileOf(...told: readonly (readonly Change[])[]): Map<string, Buffer> {
  const file = new Map<string, Buffer>();
  for (const { key, value } of told.flat())
    if (value === null) file.delete(key);
    else file.set(key, Buffer.from(value));
  return file;
}

/** All that is left to send, as a server that has nothing would get it. */
function drain(ledger: Ledger): number {
  let sum = 0;
  for (let batch = ledger.batch(3); batch !== null; batch = ledger.batch(3)) {
    for (const { upload } of batch.entries) sum += upload;
    ledger.acknowledge(batch.epoch, batch.entries.at(-1)?.seq ?? 0);
  }
  return sum;
}

test("entries wait until they are acknowledged, over restarts, under their epoch", () => {
  const first = new Ledger(1, []);
  const told = first.append([moved("alice", 5), moved("bob", 7)]);
  const second = new Ledger(2, fileOf(told));
  second.append([moved("alice", 11)]);
  assert.equal(second.size, 3);
  assert.equal(second.sumOf("alice", 1).upload, 16);
  const batch = second.batch(10);
  assert.deepEqual(
    [batch?.epoch, batch?.after, batch?.entries.map(({ seq }) => seq)],
    [1, 0, [1, 2]],
    "the older epoch first",
  );
  second.acknowledge(1, 1);
  assert.equal(second.sumOf("alice", 1).upload, 11);
  assert.equal(second.batch(10)?.after, 1);
  second.acknowledge(1, 2);
  assert.equal(second.batch(10)?.epoch, 2);
  second.acknowledge(2, 1);
  assert.deepEqual([second.size, second.batch(10)], [0, null]);
});

test("what the file did not take is told again, and what is acknowledged is taken out of it", () => {
  const ledger = new Ledger(1, []);
  const lost = ledger.append([moved("alice", 5)]);
  const again = [...ledger.unwritten(lost), ...ledger.append([moved("alice", 6)])];
  assert.equal(fileOf(again).size, 2);
  ledger.acknowledge(1, 1);
  const gone = ledger.append([]);
  assert.deepEqual([...fileOf(again, gone).keys()].length, 1);
  const repeated = ledger.unwritten(gone);
  assert.equal(fileOf(again, repeated, ledger.append([])).size, 1, "a deletion is not forgotten either");
});

test("at the bound entries of a user and hour become one that was never sent; nothing is lost", () => {
  const ledger = new Ledger(1, [], 10);
  const told: (readonly Change[])[] = [];
  let sum = 0;
  told.push(ledger.append([moved("alice", 1), moved("alice", 1)]));
  ledger.batch(10); // sent, and not answered: these two may not change any more
  sum += 2;
  for (let at = 0; at < 200; at++) {
    told.push(ledger.append([moved("alice", 1, at * 60_000), moved("bob", 1, at * 60_000)]));
    sum += 2;
  }
  assert.ok(ledger.size <= 10 + 2, String(ledger.size));
  assert.equal(fileOf(...told).size, ledger.size);
  assert.equal(ledger.sumOf("alice", 1).upload + ledger.sumOf("bob", 1).upload, sum);
  const [first, second] = ledger.batch(10)?.entries ?? [];
  assert.deepEqual([first?.seq, second?.seq], [1, 2]);
  assert.equal(drain(new Ledger(2, fileOf(...told))), sum);
  const hours = new Set(
    [...fileOf(...told).values()].map((value) => Math.floor(JSON.parse(value.toString()).at / HOUR_MS)),
  );
  assert.equal(hours.size, 4, "entries of different hours stay apart");
});

test("a database that was put back is sent what it lacks from where it stands", () => {
  const ledger = new Ledger(1, []);
  ledger.append([moved("alice", 1), moved("alice", 2)]);
  ledger.batch(1);
  ledger.acknowledge(1, 1);
  ledger.acknowledge(1, 0);
  assert.deepEqual(ledger.batch(5)?.after, 0);
  assert.equal(ledger.batch(5)?.entries.length, 1);
});

test("a record that is none is refused", () => {
  const entry = { user: "a", generation: 1, at: 1, seconds: 1, upload: 1, download: 1 };
  const key = "000000000001/000000000000001";
  for (const [name, value] of [
    ["x", entry],
    [key, { ...entry, upload: -1 }],
    [key, { ...entry, generation: "1" }],
    [key, {}],
  ] as const)
    assert.throws(() => new Ledger(2, [[name, Buffer.from(JSON.stringify(value))]]), StoreError);
});
