/** The store comes to its end under a change, and is opened anew with what it really has. */
import assert from "node:assert/strict";
import { copyFileSync, rmSync } from "node:fs";
import { test } from "node:test";
import type { UserDetailView } from "#core/users.ts";
import { InterruptedError, type OpenedStore, type SupervisedOptions } from "#store/opened-store.ts";
import { openStoreHere } from "../support/store-here.ts";
import { Bench, type FakeInbound, listener } from "../support/users-bench.ts";

const ENDED = new InterruptedError("the store's thread has ended");

/** Its store can end before or after it has written something. */
class MortalBench extends Bench {
  end: "before" | "after" | null = null;
  #options: SupervisedOptions | null = null;
  #store: OpenedStore["store"] | null = null;
  override openStore = async (options: SupervisedOptions): Promise<OpenedStore> => {
    const { records, store } = await openStoreHere(options);
    this.#options = options;
    this.#store = store;
    const commit: typeof store.commit = async (changes, how) => {
      if (this.end === "before") throw ENDED;
      await this.#store?.commit(changes, how);
      if (this.end === "after") throw ENDED;
    };
    const close = async () => this.#store?.close();
    return { records, store: { ...store, commit, close, closeNow: () => this.#store?.closeNow() } };
  };

  /** As a store does that was started again. `between` may change the file meanwhile. */
  async again(between = () => {}): Promise<void> {
    await this.#store?.close();
    between();
    const { store, records } = await openStoreHere(this.#options as SupervisedOptions);
    this.#store = store;
    await (this.#options as SupervisedOptions).agree?.(records);
    this.end = null;
  }
}

/** What an administrator sees, and what the listener has. */
function seen(bench: Bench, edge: FakeInbound) {
  const views = bench.admin.users(null).map(({ id }) => bench.admin.user(id) as UserDetailView);
  const tokens = views.map(({ subscriptionUrl }) => subscriptionUrl?.split("/").at(-1) ?? "");
  const known = tokens.map((token) => bench.admin.subscription(token)?.title ?? null);
  return structuredClone([bench.admin.inbounds(), views, known, [...edge.users]]);
}

type Change = (bench: Bench, id: string, revision: number) => Promise<unknown>;

const CHANGES: Readonly<Record<string, Change>> = {
  create: (bench, _, revision) => bench.admin.create({ inbound: "edge", name: "carol", revision }),
  rename: (bench, id, revision) => bench.admin.update(id, { revision, name: "renamed" }),
  credential: (bench, id, revision) => bench.admin.update(id, { revision, uuid: "another" }),
  disable: (bench, id, revision) => bench.admin.update(id, { revision, enabled: false }),
  limits: (bench, id, revision) =>
    bench.admin.update(id, {
      revision,
      limits: { quota: { totalBytes: 1, reset: "month" }, connections: 3 },
    }),
  "limits taken away": (bench, id, revision) =>
    bench.admin.update(id, { revision, limits: { connections: 0 } }),
  reset: (bench, id, revision) => bench.admin.resetTraffic(id, revision),
  rotate: (bench, id, revision) => bench.admin.rotateSubscription(id, revision),
  remove: (bench, id, revision) => bench.admin.remove(id, revision),
};

for (const [kind, change] of Object.entries(CHANGES))
  for (const end of ["before", "after"] as const)
    test(`a change (${kind}) whose store ends ${end} it is written: the runtime and the file agree`, async () => {
      using bench = new MortalBench();
      const [edge] = (await bench.adopt([listener("edge", "alice", "bob"), listener("side")])) as [
        FakeInbound,
      ];
      const { id } = bench.first();
      if (kind === "limits taken away")
        await bench.admin.update(id, { revision: bench.revision("edge"), limits: { connections: 2 } });
      bench.meterOf(id).reserve("upload", 50);
      await bench.users.checkpoint();
      bench.meterOf(id).reserve("upload", 7); // counted, and not written yet
      const before = seen(bench, edge);
      bench.end = end;
      await assert.rejects(change(bench, id, bench.revision("edge")), {
        status: 500,
        message: /interrupted/,
      });
      assert.deepEqual(seen(bench, edge), before, "it was answered with an error");
      await bench.again();
      if (end === "before") assert.deepEqual(seen(bench, edge), before);
      else assert.notDeepEqual(seen(bench, edge), before);
      const uploaded = end === "after" && kind === "reset" ? 0 : 57;
      const isGone = end === "after" && kind === "remove";
      assert.equal(bench.admin.user(id)?.uploadBytes, isGone ? undefined : uploaded);
      await bench.admin.create({ inbound: "edge", name: "dave", revision: bench.revision("edge") });
      const last = bench.admin.users(null).map((user) => bench.admin.user(user.id));
      const listed = [...edge.users].sort((a, b) => a.id.localeCompare(b.id));
      bench.restart();
      const [fresh] = (await bench.adopt([listener("edge"), listener("side")])) as [FakeInbound];
      assert.deepEqual(
        bench.admin.users(null).map((user) => bench.admin.user(user.id)),
        last,
        "a start finds what the runtime had",
      );
      assert.deepEqual(
        [...fresh.users].sort((a, b) => a.id.localeCompare(b.id)),
        listed,
      );
    });

test("a file without what was acknowledged is refused, and nothing changes", async () => {
  using bench = new MortalBench();
  const [edge] = (await bench.adopt([listener("edge", "alice")])) as [FakeInbound];
  const { id } = bench.first();
  const file = bench.settings([]).store;
  await bench.again(() => copyFileSync(file, `${file}.old`));
  await bench.admin.update(id, { revision: bench.revision("edge"), name: "renamed" });
  const before = seen(bench, edge);
  await assert.rejects(
    bench.again(() => {
      for (const name of [file, `${file}.bak`]) {
        rmSync(`${name}.sum`, { force: true });
        copyFileSync(`${file}.old`, name);
      }
    }),
    /revision/,
  );
  assert.deepEqual(seen(bench, edge), before);
});

test("a reload whose users were written and whose answer never came leaves nothing behind that a start would let in", async () => {
  using bench = new MortalBench();
  await bench.adopt([listener("edge", "alice")]);
  bench.end = "after";
  await assert.rejects(bench.adopt([listener("edge"), listener("new", "eve")]), ENDED);
  await bench.again();
  assert.deepEqual(
    bench.admin.users(null).map(({ name }) => name),
    ["alice"],
  );
  const [, fresh] = (await bench.adopt([listener("edge"), listener("new", "mallory")])) as FakeInbound[];
  const names = bench.admin.users("new").map(({ name }) => name);
  assert.deepEqual([names, fresh?.users.length], [["eve"], 1], "the file had them first");
  bench.restart();
  await bench.adopt([listener("edge"), listener("new")]);
  assert.deepEqual(
    bench.admin.users(null).map(({ name }) => name),
    ["alice", "eve"],
  );
});
