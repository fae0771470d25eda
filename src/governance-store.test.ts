import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { SILENT } from "#core/log.ts";
import { openStoreHere } from "../test/support/store-here.ts";
import { governanceStore } from "./governance-store.ts";

test("damaged files that are put aside within one second are all kept, and it begins anew each time", async () => {
  const home = mkdtempSync(join(tmpdir(), "weir-aside-"));
  const path = join(home, "t.db");
  try {
    for (let nth = 0; nth < 3; nth++) {
      for (const suffix of ["", ".bak"])
        writeFileSync(path + suffix, `nonsense ${nth}${suffix}`, { mode: 0o600 });
      const { store, records } = await governanceStore(path, SILENT, openStoreHere).file.open();
      assert.deepEqual(records.get("policies"), []);
      await store.close();
    }
    const kept = readdirSync(home).filter((name) => name.includes(".corrupt-"));
    const texts = kept.map((name) => readFileSync(join(home, name), "utf8"));
    const wanted = [0, 1, 2].flatMap((nth) => [`nonsense ${nth}`, `nonsense ${nth}.bak`]);
    assert.deepEqual(texts.sort(), wanted.sort());
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
});
