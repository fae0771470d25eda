/** Documents in two languages stay together: the same headings, lists, commands and names, whatever the words are. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";

const root = dirname(import.meta.dirname);
/** The English one decides. */
const PAIRS = [["README.md", "README.zh.md"]] as const;

interface Shape {
  /** What each line or block is: `##`, `-`, `text`, `sh`. */
  readonly blocks: readonly string[];
  /** The lines of code, without their comments. */
  readonly code: readonly string[];
  /** In the order of the blocks, and sorted in each: languages order words differently. */
  readonly names: readonly string[];
}

function shapeOf(text: string): Shape {
  const [blocks, code, names]: [string[], string[], string[]] = [[], [], []];
  let isCode = false;
  for (const line of text.split("\n")) {
    const fence = /^```(\w*)/.exec(line);
    if (fence !== null) {
      isCode = !isCode;
      if (isCode) blocks.push(fence[1] ?? "");
    } else if (isCode) code.push(line.replace(/\s+#.*$/, ""));
    else if (line.trim() !== "") {
      blocks.push(/^(#+|-|\||\d+\.)\s/.exec(line)?.[1] ?? "text");
      names.push((line.match(/`[^`]+`/g) ?? []).toSorted().join(" "));
    }
  }
  return { blocks, code, names };
}

for (const [english, other] of PAIRS)
  test(`${other} has the structure, the commands and the names of ${english}`, () => {
    const [a, b] = [english, other].map((file) => shapeOf(readFileSync(join(root, file), "utf8")));
    assert.ok(a !== undefined && b !== undefined && a.blocks.length > 20);
    assert.deepEqual(b.blocks, a.blocks);
    assert.deepEqual(b.code, a.code);
    assert.deepEqual(b.names, a.names);
  });
