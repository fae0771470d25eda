/** The thread of a store is ended for real while it has files open. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { test } from "node:test";
import { StoreError } from "#core/errors.ts";
import { SILENT } from "#core/log.ts";
import { WorkerKiller } from "../support/worker-killer.ts";
import { Store } from "#store/backup.ts";
import {
  type AsyncStore,
  InterruptedError,
  type SupervisedOptions,
  UnavailableError,
} from "#store/opened-store.ts";
import { openSupervisedStore } from "#store/supervised-store.ts";

const PARTS = ["users"];
const put = (key: string, text: string) => ({ part: "users", key, value: Buffer.from(text) });
const BOTH = { backup: true };

class Bench implements Disposable {
  readonly home = mkdtempSync(join(tmpdir(), "weir-steady-"));
  readonly path = join(this.home, "s.db");
  readonly killer = new WorkerKiller();
  readonly lines: string[] = [];

  options(agree?: SupervisedOptions["agree"]): SupervisedOptions {
    const write = (text: unknown) => void this.lines.push(String(text));
    const log = { ...SILENT, error: write, warning: write };
    return { path: this.path, parts: PARTS, nowMs: Date.now, log, ...(agree === undefined ? {} : { agree }) };
  }

  async logged(pattern: RegExp): Promise<void> {
    while (!pattern.test(this.lines.join("\n"))) await nextTurn();
  }

  /** The first commit that is taken again. */
  async commits(store: AsyncStore, key: string, text: string): Promise<void> {
    for (;;) {
      try {
        return await store.commit([put(key, text)], BOTH);
      } catch (error) {
        assert.ok(error instanceof UnavailableError);
        await nextTurn();
      }
    }
  }

  contents(): readonly string[] {
    using store = Store.open({ path: this.path, parts: PARTS, nowMs: Date.now, log: SILENT });
    return [...store.entries("users")].map(([key, value]) => `${key}=${value}`);
  }

  [Symbol.dispose](): void {
    this.killer[Symbol.dispose]();
    rmSync(this.home, { recursive: true, force: true });
  }
}

test("a thread that ends is started again; what was under way is refused and in the file whole or not at all", async () => {
  using bench = new Bench();
  const agreed: string[][] = [];
  const { store } = await openSupervisedStore(
    bench.options(async (records) => {
      agreed.push((records.get("users") ?? []).map(([key, value]) => `${key}=${String(value)}`));
    }),
  );
  for (const [round, name] of ["store", "store-second", "store"].entries()) {
    await bench.commits(store, "acknowledged", `${round}`);
    const underWay = Array.from({ length: 50 }, (_, nth) =>
      store.commit([put("a", `${round} ${nth}`), put("b", `${round} ${nth}`)], BOTH).then(
        () => nth,
        (error: Error) => error,
      ),
    );
    await bench.killer.kill(name);
    const ends = await Promise.all(underWay);
    const taken = ends.filter((end) => typeof end === "number");
    for (const end of ends) assert.ok(typeof end === "number" || end instanceof InterruptedError);
    await bench.logged(new RegExp(`(opened again in[^]*){${round + 1}}`));
    await assert.rejects(store.commit([put("c", "early")], BOTH), UnavailableError);
    await bench.commits(store, "after", `${round}`);
    const found = agreed.at(-1) ?? [];
    assert.ok(found.includes(`acknowledged=${round}`), found.join());
    const a = found.find((text) => text.startsWith("a="))?.slice(2);
    assert.equal(found.find((text) => text.startsWith("b="))?.slice(2), a, "whole or not at all");
    if (taken.length > 0) assert.ok(Number(a?.split(" ")[1]) >= (taken.at(-1) as number));
    assert.ok(!found.some((text) => text.startsWith("c=")));
  }
  assert.equal(agreed.length, 3);
  assert.match(bench.lines.join("\n"), /opened again in 0.1 s[^]*open again/);
  await store.close();
  assert.ok(bench.contents().includes("after=2"));
});

test("what waits for the owner's consent is not written, and an owner who refuses keeps it closed", async () => {
  using bench = new Bench();
  const asked = Promise.withResolvers<void>();
  const consent = Promise.withResolvers<void>();
  const { store } = await openSupervisedStore(
    bench.options(() => {
      asked.resolve();
      return consent.promise;
    }),
  );
  await bench.killer.kill("store");
  await asked.promise;
  await assert.rejects(store.commit([put("a", "1")], BOTH), /at present/);
  consent.reject(new StoreError("another program has written"));
  await bench.logged(/until the program is started again.*another program has written/);
  await assert.rejects(store.commit([put("a", "2")], BOTH), /another program has written/);
  await assert.rejects(store.close(), /another program has written/);
  assert.deepEqual(bench.contents(), [], "and the lock is free");
});

test("while it cannot be opened it is tried again, later each time, until it can", async () => {
  using bench = new Bench();
  const { store } = await openSupervisedStore(bench.options());
  await store.commit([put("a", "1")], BOTH);
  await bench.killer.kill("store");
  const files = ["s.db", "s.db.bak"].map((name) => join(bench.home, name));
  for (const file of files) renameSync(file, `${file}.away`);
  for (const file of files) writeFileSync(file, '{"version":1}', { mode: 0o600 });
  await bench.logged(/JSON.*again in 0.4 s/);
  await assert.rejects(store.commit([put("a", "2")], BOTH), /JSON/);
  assert.equal(readFileSync(bench.path, "utf8"), '{"version":1}', "it is not overwritten");
  for (const file of files) renameSync(`${file}.away`, file);
  await bench.commits(store, "a", "3");
  await store.close();
  assert.deepEqual(bench.contents(), ["a=3"]);
});

test("it can be closed while it has no thread, and no other one comes", async () => {
  for (const end of ["close", "closeNow"] as const) {
    using bench = new Bench();
    const { store } = await openSupervisedStore(bench.options());
    await bench.killer.kill("store");
    if (end === "close") await assert.rejects(store.close(), UnavailableError);
    else assert.throws(() => store.closeNow(), StoreError);
    while (bench.killer.count("store-second") > 0) await nextTurn();
    assert.equal(bench.killer.count("store"), 0);
    assert.deepEqual(bench.contents(), []);
  }
});
