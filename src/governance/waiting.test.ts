/** What is counted while the store writes: with a store that writes when the test says so. */
import { NO_LEASES, NO_NEIGHBOURS } from "../../test/support/no-neighbours.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import { SILENT } from "#core/log.ts";
import {
  governed,
  policy,
  settings,
  TurnedClock,
  type Governed,
} from "../../test/support/governed-ledger.ts";
import { Governance } from "./governance.ts";
import { GovernedLedger } from "./ledger.ts";
import { MemoryStore, type RecordChange } from "./store.ts";

/** Takes changes in their order, when it is let; at its end it takes all that wait. */
class SlowStore extends MemoryStore {
  readonly #waiting: (() => void)[] = [];

  override commit(changes: Iterable<RecordChange>): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#waiting.push(() => void super.commit(changes).then(resolve, reject));
    return promise;
  }

  override closeNow(): void {
    while (this.#waiting.length > 0) this.next();
  }

  next(): void {
    this.#waiting.shift()?.();
  }

  get waits(): number {
    return this.#waiting.length;
  }

  async until(count: number): Promise<void> {
    while (this.waits < count) await new Promise(setImmediate);
  }

  /** Lets everything through until `done`. */
  async letThrough(done: Promise<unknown>): Promise<void> {
    let isOver = false;
    void done.finally(() => (isOver = true)).catch(() => {});
    while (!isOver) {
      this.next();
      await new Promise(setImmediate);
    }
  }
}

const QUOTA = {
  totalBytes: 1e6,
  uploadBytes: 0,
  downloadBytes: 0,
  windowMs: 3_600_000,
  overageUploadBps: 0,
  overageDownloadBps: 0,
};
const BOOK = settings({ global: policy({ quota: QUOTA }) });

async function start(store = new SlowStore(), clock?: Governed["clock"]): Promise<[Governed, SlowStore]> {
  const core = governed(clock, store);
  const applied = core.apply(BOOK);
  await store.letThrough(applied);
  await applied;
  await store.until(1); // the first commit, which a start makes by itself
  store.next();
  return [core, store];
}

/** As policies, as the quota's window and as a report. */
function counted({ governance, clock }: Governed): readonly number[] {
  const [status] = governance.status().policies;
  const buckets = governance.report({
    key: "global:global",
    granularity: "hour",
    from: 0,
    to: clock.wall / 1000 + 1,
  });
  const ofReports = buckets.reduce((sum, { counters }) => sum + counters.upload, 0);
  return [status?.counters.upload ?? -1, status?.rolling.upload ?? -1, ofReports];
}

async function afterRestart(core: Governed, store: SlowStore): Promise<readonly number[]> {
  const [next] = await start(store, core.clock);
  const found = counted(next);
  next.governance[Symbol.dispose]();
  return found;
}

for (const kind of ["journal", "commit"] as const)
  test(`what is counted while a ${kind} waits is written by the next one, also where this one fails`, async () => {
    for (const fails of [false, true]) {
      const [core, store] = await start();
      const meter = core.session();
      meter.reserve("upload", 5);
      if (kind === "commit") core.clock.monotonic += 600_000;
      const ticking = core.governance.tick();
      await store.until(1);
      meter.reserve("upload", 70);
      store.failure = fails ? new Error("no space") : null;
      await store.letThrough(ticking);
      store.failure = null;
      await store.letThrough(core.governance.tick());
      assert.deepEqual(await afterRestart(core, store), [75, 75, 75], `fails: ${fails}`);
      core.governance[Symbol.dispose]();
    }
  });

test("what is counted while a record waits for its turn stands in all of it or in none", async () => {
  for (const kind of ["journal", "commit"] as const) {
    const [core, store] = await start();
    const meter = core.session();
    meter.reserve("upload", 5);
    const before = core.apply(BOOK);
    await store.until(1);
    if (kind === "commit") core.clock.monotonic += 600_000;
    const ticking = core.governance.tick(); // behind the change
    meter.reserve("upload", 70);
    store.next();
    await store.until(1);
    store.next();
    assert.deepEqual(await afterRestart(core, store), [75, 75, 75], kind);
    await store.letThrough(Promise.all([before, ticking]));
    core.governance[Symbol.dispose]();
  }
});

test("a tick that comes while the one before waits adds nothing to the queue", async () => {
  const [core, store] = await start();
  core.session().reserve("upload", 5);
  const ticking = core.governance.tick();
  await store.until(1);
  core.session().reserve("upload", 6);
  await core.governance.tick();
  assert.equal(store.waits, 1);
  await store.letThrough(ticking);
  core.governance[Symbol.dispose]();
  assert.deepEqual(await afterRestart(core, store), [11, 11, 11]);
});

test("an end that overtakes a journal record leaves the whole, and no older record behind it", async () => {
  const [core, store] = await start();
  const meter = core.session();
  meter.reserve("upload", 5);
  void core.governance.tick(); // its record is on the way
  await store.until(1);
  meter.reserve("upload", 70);
  core.governance[Symbol.dispose]();
  assert.equal(store.parts.get("journal")?.size, 0);
  assert.deepEqual(await afterRestart(core, store), [75, 75, 75]);
});

test("a reset is answered when it is written", async () => {
  const [core, store] = await start();
  core.session().reserve("upload", 5);
  let isAnswered = false;
  const reset = core.governance.reset("global").then((status) => {
    isAnswered = true;
    return status;
  });
  await store.until(1);
  assert.equal(isAnswered, false);
  await store.letThrough(reset);
  assert.equal((await reset)?.policies[0]?.counters.upload, 0);
  core.governance[Symbol.dispose]();
});

test("a reset that cannot be written is refused, and nothing that was counted is lost", async () => {
  const [core, store] = await start();
  const meter = core.session();
  meter.reserve("upload", 5);
  await store.letThrough(core.governance.tick());
  const before = core.governance.status().policies[0];
  const reset = core.governance.reset("global");
  await store.until(1);
  meter.reserve("upload", 70);
  store.failure = new Error("no space");
  await Promise.all([assert.rejects(reset, /no space/), store.letThrough(reset.catch(() => undefined))]);
  store.failure = null;
  const after = core.governance.status().policies[0];
  assert.deepEqual(
    [after?.counters.upload, after?.rolling.upload, after?.lastReset],
    [75, 75, before?.lastReset],
  );
  core.clock.monotonic += 600_000;
  await store.letThrough(core.governance.tick());
  assert.deepEqual(await afterRestart(core, store), [75, 75, 75]);
  core.governance[Symbol.dispose]();
});

test("a store is opened again only when it has been let go of, whatever came between", async () => {
  const { promise: isLet, resolve: letGo } = Promise.withResolvers<void>();
  const held = new Set<string>();
  const storeFile = (name: string) => ({
    key: name,
    file: {
      sizeBytes: () => 0,
      async open() {
        assert.ok(!held.has(name), `${name} is still open`);
        held.add(name);
        const store = new MemoryStore();
        store.close = async () => {
          if (name === "slow") await isLet;
          held.delete(name);
        };
        return { store, records: store.records };
      },
    },
  });
  const ledger = new GovernedLedger(new TurnedClock());
  const governance = new Governance({
    ledger,
    log: SILENT,
    storeFile,
    neighbours: NO_NEIGHBOURS,
    leases: NO_LEASES,
  });
  const apply = async (store: string | null): Promise<void> => {
    const next = store === null ? null : settings({ store });
    (await governance.prepare(next, { tolerant: false })).activate();
  };
  await apply("slow");
  await apply("other");
  await apply(null);
  const again = apply("slow");
  for (let turns = 0; turns < 5; turns++) await new Promise(setImmediate);
  letGo();
  await again;
  governance[Symbol.dispose]();
});
