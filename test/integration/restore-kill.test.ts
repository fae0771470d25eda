/** The start that puts a restore in force, or takes it back, is killed at each of its renames: nothing of two states is mixed. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { giveUp, settle } from "#backup/put-in-force.ts";
import { stageRestore } from "#backup/stage.ts";
import { fillStore, type StoreTarget } from "#backup/restore.ts";
import { SILENT } from "#core/log.ts";
import { STORE_PARTS } from "#host/store-parts.ts";
import { Store } from "#store/backup.ts";
import { ProfileCache } from "#store/profile-cache.ts";
import { restoreAtStart } from "#cli/staged-restore.ts";
import { stateFolder } from "../support/managed-core.ts";
import { missing } from "../support/peer.ts";

const CHILD = join(import.meta.dirname, "../support/finish-restore.ts");
const ROLES = ["users", "journal", "policies"] as const;
const FIRST = { users: "listeners", journal: "tokens", policies: "policies" } as const;
/** More than there are renames. */
const MOST = 100;
/** Of the renames each third is enough for a run of all tests; `KILL_STEP=1` has all of them. */
const STEP = Number(process.env["KILL_STEP"] ?? 3);

function targetsOf(home: string, text: string): readonly StoreTarget[] {
  return ROLES.map((role) => ({
    path: join(home, `${role}.db`),
    parts: STORE_PARTS[role],
    store: {
      role,
      path: `${role}.db`,
      parts: STORE_PARTS[role].map((name) => ({
        name,
        records: name === FIRST[role] ? [["a", Buffer.from(text)] as const] : [],
      })),
    },
  }));
}

/** The old state, and beside it the new one, which waits. */
function makeHome(home: string): void {
  mkdirSync(home, { mode: 0o700 });
  const file = join(home, "config.yaml");
  writeFileSync(file, "mode: rule # old\n");
  for (const target of targetsOf(home, "old")) fillStore(target, SILENT, Date.now);
  writeFileSync(join(home, "users.db.seen"), "weir-seen ".padEnd(128)); // of the old one alone
  choose(home, "old");
  const contents = {
    createdAtMs: 0,
    version: "1",
    configuration: "mode: rule # new\n",
    stores: targetsOf(home, "new").map(({ store }) => store),
    choices: { selected: { group: "new" }, storage: {} },
  };
  const by = { kind: "owner", name: "controller" } as const;
  stageRestore(contents, { home, file, stores: targetsOf(home, "new"), by, from: "" }, Date.now);
}

function choose(home: string, member: string): void {
  using cache = new ProfileCache(join(home, "weir-cache.db"), SILENT);
  cache.select("group", member);
}

/** Of each part of the state. */
function stateIn(home: string): readonly string[] {
  using cache = new ProfileCache(join(home, "weir-cache.db"), SILENT);
  const stores = targetsOf(home, "").map(({ path, parts, store: { role } }) => {
    using store = Store.open({ path, parts, nowMs: Date.now, log: SILENT });
    return [...store.entries(FIRST[role])].map(([, value]) => value.toString()).join();
  });
  const text = readFileSync(join(home, "config.yaml"), "utf8");
  return [...stores, / # (\w+)/.exec(text)?.[1] ?? "", cache.selected("group") ?? ""];
}

/** False: it was killed. */
function runKilledAt(home: string, n: number): boolean {
  const calls = "rename,renameat2";
  const { signal, status, stderr } = spawnSync(
    "strace",
    ["-f", "-o", "/dev/null", "-e", `trace=${calls}`, "-e", `inject=${calls}:signal=SIGKILL:when=${n}`, process.execPath, CHILD, home], // prettier-ignore
    { encoding: "utf8", env: { ...process.env, UV_THREADPOOL_SIZE: "1" } },
  );
  assert.ok(signal === "SIGKILL" || status === 0 || status === 137, stderr);
  return status === 0;
}

for (const [what, isTakenBack, wanted] of [
  ["put in force", false, "new"],
  ["taken back", true, "old"],
] as const)
  test(
    `killed at any rename, it is ${what} by the next start`,
    { skip: missing("strace"), timeout: 300_000 },
    async (t) => {
      // prettier-ignore
      using folder = stateFolder();
      let n = 1;
      for (let isDone = false; !isDone && n < MOST; n += STEP) {
        const home = join(folder.path, String(n));
        makeHome(home);
        if (isTakenBack) {
          assert.equal((await restoreAtStart(home, SILENT))?.kind, "applied");
          assert.ok(giveUp(home, "a test"));
        }
        isDone = runKilledAt(home, n);
        const outcome = await restoreAtStart(home, SILENT);
        if (!isTakenBack) assert.equal(outcome?.kind, "applied", `rename ${n}`);
        settle(home);
        assert.deepEqual(stateIn(home), ["users", "journal", "policies", "config", "choices"].map(() => wanted), `rename ${n}: ${readdirSync(home).join(" ")}`); // prettier-ignore
        assert.deepEqual(readdirSync(home).filter((name) => /restor/.test(name) && !/before-restore-\d+/.test(name)), [], `rename ${n}`); // prettier-ignore
      }
      assert.ok(n > 8 && n < MOST, `${n} renames`);
      t.diagnostic(`${Math.ceil(n / STEP) - 2} kills`);
    },
  );
