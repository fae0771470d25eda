/** The words that ARCHITECTURE.md and the field use, and not the ones that the code had before. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { test } from "node:test";

const src = join(import.meta.dirname, "../src");
const files = globSync("**/*.ts", { cwd: src, exclude: ["**/*.test.ts"] }).sort();

/** Each former word with its successor: in identifiers as one of their parts, in comments as a word. */
const FORMER: Readonly<Record<string, string>> = {
  arriving: "pending",
  conversation: "connection, session, stream or task",
  conversations: "connections, sessions, streams or tasks",
  doorkeeper: "authenticator",
  entrance: "authenticated connection",
  farewell: "final reply",
  greet: "authenticate",
  heir: "successor",
  husk: "shell",
  newcomer: "pending connection",
  nobody: "none",
  patience: "timeout",
  roster: "registry",
  seldom: "slow",
  shaken: "tls accepted",
  shaking: "handshake",
  somebody: "the owner, the caller, another program",
  stranger: "unauthenticated client",
  strangers: "unauthenticated clients",
  teller: "replier, observer",
  whoever: "the owner, the caller, the client",
  whomever: "the client",
};

/** Texts for users and wire formats are not names of the program. */
const STRINGS = /"(?:[^"\\\n]|\\.)*"|`[^\n]*`/g;

/** The parts of an identifier or of a word: `onTlsAccepted` is on, tls, accepted. */
function wordsOf(text: string): readonly string[] {
  return text.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+/g)?.map((word) => word.toLowerCase()) ?? [];
}

test("no file of src/ uses a word that was replaced", () => {
  const found: string[] = [];
  for (const file of files)
    for (const [index, line] of readFileSync(join(src, file), "utf8").split("\n").entries())
      for (const word of new Set(wordsOf(line.replace(STRINGS, ""))))
        if (Object.hasOwn(FORMER, word))
          found.push(`src/${file}:${index + 1}: ${word} (now: ${FORMER[word]})`);
  assert.deepEqual(found, []);
});

test("no file name of src/ has one either", () => {
  const found = files.filter((file) => wordsOf(basename(file)).some((word) => Object.hasOwn(FORMER, word)));
  assert.deepEqual(found, []);
});

const root = join(import.meta.dirname, "..");
/** The lists of words to refuse. */
const LISTS = new Set(["test/vocabulary.test.ts", "test/commits.test.ts"]);
const tests = globSync(["test/**/*.ts", "src/**/*.test.ts", "bench/**/*.ts", "scripts/**/*.{ts,mjs}"], {
  cwd: root,
}).filter((file) => !LISTS.has(file));

test("no test, benchmark or script has one, in its names, titles, texts and comments", () => {
  assert.ok(tests.length > 500);
  const found = tests.sort().flatMap((file) => {
    const lines = readFileSync(join(root, file), "utf8").split("\n");
    return lines.flatMap((line, index) =>
      wordsOf(line)
        .filter((word) => Object.hasOwn(FORMER, word))
        .map((word) => `${file}:${index + 1}: ${word} (now: ${FORMER[word]})`),
    );
  });
  assert.deepEqual(found, []);
});
