import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { SILENT } from "#core/log.ts";
import { PARTS } from "#governance/store.ts";
import { openStoreHere } from "../support/store-here.ts";
import { governanceStore } from "#host/governance-store.ts";

test("damaged files that are put aside within one second are all kept, and it begins anew each time", async () => {
  const home = mkdtempSync(join(tmpdir(), "weir-aside-"));
  const path = join(home, "t.db");
  try {
    for (let nth = 0; nth < 3; nth++) {
      await (await openStoreHere({ path, parts: PARTS, nowMs: Date.now, log: SILENT })).store.close();
      for (const [at, suffix] of ["", ".bak"].entries())
        writeFileSync(
          path + suffix,
          Buffer.concat([readFileSync(path + suffix).subarray(0, 4096), Buffer.of(nth, at)]),
        );
      const { store, records } = await governanceStore(path, SILENT, openStoreHere).file.open();
      assert.deepEqual(records.get("policies"), []);
      await store.close();
    }
    const kept = readdirSync(home).filter((name) => name.includes(".corrupt-"));
    const ends = kept.map((name) => [...readFileSync(join(home, name)).subarray(-2)].join());
    assert.deepEqual(ends.sort(), ["0,0", "0,1", "1,0", "1,1", "2,0", "2,1"]);
    for (const suffix of ["", ".bak"]) writeFileSync(path + suffix, Buffer.of(0, 255, 254));
    await assert.rejects(
      governanceStore(path, SILENT, openStoreHere).file.open(),
      /no database; left as it is/,
    );
    for (const suffix of ["", ".bak"]) assert.deepEqual(readFileSync(path + suffix), Buffer.of(0, 255, 254));
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
});
