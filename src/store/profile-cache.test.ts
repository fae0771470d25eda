import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { SILENT } from "#core/log.ts";
import { ProfileCache } from "./profile-cache.ts";

function inFolder(work: (path: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), "weir-cache-"));
  try {
    work(join(folder, "home", "cache.db"));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("choices survive a restart; the file is made at the first write", () =>
  inFolder((path) => {
    const first = new ProfileCache(path, SILENT);
    assert.equal(first.selected("Auto"), null);
    assert.ok(!existsSync(path));
    first.select("Auto", "node 1");
    first.select("🇯🇵/50%", "x#y");
    first[Symbol.dispose]();
    using second = new ProfileCache(path, SILENT);
    assert.equal(second.selected("Auto"), "node 1");
    assert.equal(second.selected("🇯🇵/50%"), "x#y");
  }));

test("a damaged file is made anew, an unusable path costs only persistence", () =>
  inFolder((path) => {
    const broken = join(path, "..", "..", "broken.db");
    writeFileSync(broken, "this is no database, and long enough to be sure of it".repeat(50));
    const warnings: string[] = [];
    const log = { ...SILENT, warning: (text: unknown) => void warnings.push(String(text)) };
    {
      using cache = new ProfileCache(broken, log);
      cache.set("storage", "a", "1");
    }
    using again = new ProfileCache(broken, log);
    assert.equal(again.get("storage", "a"), "1");
    assert.match(warnings.join("\n"), /damaged/);

    using unusable = new ProfileCache("/dev/null/cache.db", log);
    unusable.set("storage", "a", "2");
    assert.equal(unusable.get("storage", "a"), "2");
    assert.match(warnings.at(-1) ?? "", /until the next start/);
  }));
