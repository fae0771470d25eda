/** A store that cannot be opened at the start: the limits hold, it is tried again, and nothing that was counted is lost. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { StoreError } from "#core/errors.ts";
import {
  governanceWith,
  governed,
  policy,
  settings,
  TurnedClock,
} from "../../test/support/governed-ledger.ts";
import { until } from "../../test/support/until.ts";
import type { MemoryStore, Part, StoreFile } from "./store.ts";

const quota = {
  totalBytes: 1000,
  uploadBytes: 0,
  downloadBytes: 0,
  windowMs: 3_600_000,
  overageUploadBps: 0,
  overageDownloadBps: 0,
};
const BOOK = settings({ global: policy({ quota }) });

test("what was counted without the store is added to what it holds, and is kept from then on", async () => {
  const clock = new TurnedClock();
  const first = governed(clock);
  await first.apply(BOOK);
  first.session().reserve("upload", 600);
  await first.apply(null);
  clock.pass(60);

  let fault: Error | null = new StoreError("no space left on device");
  let opened = 0;
  const core = governed(clock, first.store);
  const open: StoreFile["open"] = async () => {
    if (fault !== null) throw fault;
    opened++;
    return { store: core.store, records: core.store.records };
  };
  using governance = governanceWith(core.ledger, { open, sizeBytes: () => 0 });
  (await governance.prepare(BOOK, { tolerant: true })).activate();
  const status = () => governance.status().policies[0] ?? assert.fail();
  core.session().reserve("upload", 500);
  assert.deepEqual([status().counters.upload, status().overQuota], [500, false]);
  assert.equal(governance.status().storeFault, "no space left on device");
  await assert.rejects(governance.reset("global"), { status: 500 });
  await assert.rejects(governance.prepare(BOOK, { tolerant: false }), /no space/);
  const { revision } = governance;

  fault = null;
  await until("the store is open", () => governance.status().storeFault === null);
  const { counters, rolling, overQuota } = status();
  assert.deepEqual([counters.upload, counters.connections], [1100, 2], "both sessions, once each");
  assert.deepEqual([rolling.upload, overQuota, governance.revision, opened], [1100, true, revision, 1]);
  const hours = governance.report({ key: "global:global", granularity: "hour", from: 0, to: 4e9 });
  assert.equal(
    hours.reduce((sum, one) => sum + one.counters.upload, 0),
    1100,
  );
  (await governance.prepare(BOOK, { tolerant: false })).abandon(); // commits
  assert.equal(opened, 1, "it is open already");
  clock.pass(3600);
  assert.equal(status().rolling.upload, 500, "what was stored has left the window, what came later has not");

  const again = governed(clock, core.store);
  await again.apply(BOOK);
  assert.equal(again.governance.status().policies[0]?.counters.upload, 1100);
  await again.apply(null);
});

test("the log and the open minute do not make a store too large, at a start as at a change", async () => {
  const rows = (store: MemoryStore, part: Part): number => store.parts.get(part)?.size ?? 0;
  const sizeBytes = (store: MemoryStore): number =>
    30_000 * rows(store, "reports") + 60_000 * rows(store, "journal");
  const cap = (maxStoreSizeBytes: number) => ({ ...BOOK, maxStoreSizeBytes });
  const first = governed(undefined, undefined, sizeBytes);
  await first.apply(cap(100_000));
  const count = async (): Promise<void> => {
    first.session().reserve("upload", 600);
    await first.governance.tick();
  };
  await count();
  assert.equal(rows(first.store, "journal"), 2);
  await first.apply(cap(100_000));
  await count();
  await assert.rejects(first.apply(cap(20_000)), /30000 bytes, more than max-store-size 20000/);
  await count();

  const again = governed(first.clock, first.store, sizeBytes);
  await again.apply(cap(100_000));
  const [status] = again.governance.status().policies;
  assert.deepEqual([status?.counters.upload, status?.overQuota], [1800, true]);
  await again.apply(null);
  await first.apply(null);
});
