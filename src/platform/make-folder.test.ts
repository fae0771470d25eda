import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { makeFolder } from "./make-folder.ts";

test("folders are made with what is missing above them, and what cannot be made says why", (t) => {
  const home = mkdtempSync(join(tmpdir(), "weir-folder-"));
  t.after(() => rmSync(home, { recursive: true }));
  const deep = join(home, "a", "b", "c");
  makeFolder(deep, 0o700);
  makeFolder(deep, 0o700);
  for (const made of [deep, join(home, "a")]) assert.equal(statSync(made).mode & 0o777, 0o700);
  writeFileSync(join(home, "file"), "");
  symlinkSync(join(home, "nowhere"), join(home, "link"));
  assert.throws(() => makeFolder(join(home, "file", "x")), /EEXIST: .*file'/);
  assert.throws(() => makeFolder(join(home, "link", "x")), /EEXIST: .*link'/);
});

const skip = process.platform === "linux" ? false : "SKIP make-folder: needs Linux";

test("below /proc, where nothing can be made, it ends", { skip }, () => {
  assert.throws(() => makeFolder("/proc/weir/home"), /ENOENT: .*'\/proc\/weir'/);
});
