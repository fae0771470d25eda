/** Subjects of commits, from the one that added this file on: `folder: verb …`, readable in a list. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { dirname } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const FILE = fileURLToPath(import.meta.url);
const ROOT = dirname(dirname(FILE));
const MOST_CHARACTERS = 72;

/** Null: there is no git, or no history. */
function git(...args: readonly string[]): readonly string[] | null {
  try {
    const said = execFileSync("git", args, {
      cwd: ROOT,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    });
    return said.split("\n").filter((line) => line !== "");
  } catch {
    return null;
  }
}

const SHAPE = /^[a-z0-9][a-z0-9./-]*(?:, [a-z0-9][a-z0-9./-]*)*: ([a-z][a-z-]*)\b/;
/** What a sentence begins with that tells instead of asking for something. */
const TELLING = new Set(
  "a an the this that these those it its no nobody none not who whoever what whatever where when which how there all every each some one two more".split(
    " ",
  ),
);
/** Verbs that only look as if they stood in another form. */
const VERBS = new Set(
  "embed feed need seed shed speed bring ping ring sing sting string swing focus bias alias".split(" "),
);

/** Null: nothing is wrong with it. */
function faultOf(subject: string): string | null {
  if (subject.length > MOST_CHARACTERS) return `has ${subject.length} characters; at most ${MOST_CHARACTERS}`;
  const [, verb] = SHAPE.exec(subject) ?? [];
  if (verb === undefined) return "expected `folder: verb …`, all lower case at its beginning";
  if (TELLING.has(verb) || (!VERBS.has(verb) && /(?:ed|ing|[^s]s)$/.test(verb)))
    return `expected the imperative of a verb behind the folder, got ${JSON.stringify(verb)}`;
  return null;
}

test("subjects that are as they should be, and others", () => {
  const good = [
    "router: resolve only when a rule asks",
    "engine, net: let a slot go",
    "docs: address readers",
    "core/rate: embed it",
  ];
  for (const subject of good) assert.equal(faultOf(subject), null, subject);
  const bad = [
    "Router: resolve",
    "router resolve",
    "router: Resolve",
    "router: resolves names",
    "router: resolved names",
    "router: resolving names",
    "net: whoever is no stream has shaken hands",
    "docs: the figures",
    `router: ${"x".repeat(70)}`,
    "",
  ];
  for (const subject of bad) assert.notEqual(faultOf(subject), null, subject);
});

const added = git("log", "--diff-filter=A", "--format=%H", "--", FILE)?.at(-1) ?? null;

test(
  "every subject since then",
  { skip: added === null ? "SKIP commits: there is no history with this file" : false },
  () => {
    const format = ["log", "--no-merges", "--format=%h %s"];
    const subjects = [
      ...(git(...format, "-1", added ?? "") ?? []),
      ...(git(...format, `${added}..HEAD`) ?? []),
    ];
    assert.ok(subjects.length > 0);
    const faults = subjects.map((line) => [line, faultOf(line.slice(line.indexOf(" ") + 1))] as const);
    assert.deepEqual(
      faults.filter(([, fault]) => fault !== null).map(([line, fault]) => `${line}: ${fault}`),
      [],
    );
  },
);
