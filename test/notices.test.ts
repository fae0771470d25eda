/** What is shipped says under which licences, and its README names only what is there. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { namedFiles } from "./support/named-files.ts";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

test("THIRD-PARTY-NOTICES.txt is what node scripts/notices.mjs writes", async () => {
  const { notices, NOTICES_FILE } = (await import("../scripts/notices.mjs" as string)) as {
    notices(): string;
    NOTICES_FILE: string;
  };
  assert.equal(readFileSync(NOTICES_FILE, "utf8"), notices(), "run: node scripts/notices.mjs");
});

test("package.json and LICENSE say the same", () => {
  const { license } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { license: string };
  assert.equal(readFileSync(join(root, "LICENSE"), "utf8").split("\n")[0], `${license} License`);
});

for (const page of ["README.md", "SECURITY.md", "CONTRIBUTING.md", "ARCHITECTURE.md"])
  test(`${page} names files that are there`, () => {
    const named = namedFiles(readFileSync(join(root, page), "utf8"));
    assert.deepEqual(
      named.filter((file) => !existsSync(join(root, file))),
      [],
    );
  });
