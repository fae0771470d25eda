import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { test } from "node:test";

const folder = join(import.meta.dirname, "../../ui/styles");
/** Of text that is always written from left to right, and what turns the rest around. */
const ONE_WAY = new Set(["editor.css", "direction.css"]);
const SIDES =
  /(?:margin|padding|border)-(?:left|right)\b|^\s*(?:left|right):|text-align: (?:left|right)|(?:margin|padding|border-radius): (?:\S+ ){3}\S+;/;

test("the style sheets say start and end, so that right-to-left languages have the page mirrored", () => {
  const files = globSync("*.css", { cwd: folder });
  assert.ok(files.length >= 6);
  const found = files
    .filter((file) => !ONE_WAY.has(basename(file)))
    .flatMap((file) =>
      readFileSync(join(folder, file), "utf8")
        .split("\n")
        .flatMap((line, at) => (SIDES.test(line) ? [`${file}:${at + 1}: ${line.trim()}`] : [])),
    );
  assert.deepEqual(found, []);
});
