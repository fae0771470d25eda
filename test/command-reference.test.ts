/** Completions, the manual page and docs/commands.md: made of the usage texts, and whole. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { completionScript } from "#cli/completion.ts";
import { commandLine } from "#cli/index.ts";
import { manPage } from "#cli/man.ts";
import { RUN_FLAGS } from "#cli/run-flags.ts";
import { commandReference, COMMANDS_PAGE } from "../scripts/command-docs.ts";

const scriptOf = async (shell: string): Promise<string> => completionScript([shell], await commandLine());
const has = (program: string): boolean => spawnSync("which", [program]).status === 0;
const skipWithout = (program: string) =>
  has(program) ? false : `SKIP completion: ${program} is not installed`;

test("the outline has what the tables of flags have, and the words of each command", async () => {
  const { commands, flags } = await commandLine();
  const wanted = Object.entries(RUN_FLAGS).map(([name, { long, value = null }]) => ({
    names: long === undefined ? [`-${name}`] : [`-${name}`, `--${long}`],
    value,
  }));
  assert.deepEqual(
    flags.map(({ names, value }) => ({ names, value })),
    wanted,
  );
  const verbs = new Map(commands.map((one) => [one.name, one.verbs]));
  assert.deepEqual(verbs.get("token"), ["create", "list", "revoke"]);
  assert.deepEqual(verbs.get("audit"), ["verify", "export"]);
  assert.deepEqual(verbs.get("completion"), ["bash", "zsh", "fish"]);
  assert.ok(verbs.get("generate")?.includes("reality-keypair") && verbs.get("generate")?.includes("uuid"));
  assert.ok(verbs.get("import")?.includes("3x-ui"));
  assert.deepEqual([verbs.get("explain"), verbs.get("backup")], [[], []]);
  const token = commands.find(({ name }) => name === "token");
  assert.ok(token?.flags.some(({ names, value }) => names[0] === "-scopes" && value === "LIST"));
  for (const { name, summary } of commands) assert.ok(name !== "" && summary !== "", name);
});

test("docs/commands.md is up to date: npm run docs", async () => {
  assert.equal(readFileSync(COMMANDS_PAGE, "utf8"), await commandReference());
});

test("bash completes commands, their words and their flags, and leaves values to file names", async () => {
  const script = await scriptOf("bash");
  const completed = (...words: readonly string[]): readonly string[] => {
    const line = words.map((word) => `'${word}'`).join(" ");
    const code = `${script}\nCOMP_WORDS=(${line}); COMP_CWORD=${words.length - 1}; _weir; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout, stderr } = spawnSync("bash", ["--norc", "-c", code], { encoding: "utf8" });
    assert.equal(stderr, "");
    return stdout.trim().split("\n");
  };
  assert.deepEqual(completed("weir", "tok"), ["token"]);
  assert.deepEqual(completed("weir", "--ver"), ["--version"]);
  assert.deepEqual(completed("weir", "token", "re"), ["revoke"]);
  assert.deepEqual(completed("weir", "token", "create", "-sc"), ["-scopes"]);
  assert.deepEqual(completed("weir", "-f", "con"), [""]);
});

for (const shell of ["zsh", "fish"])
  test(`${shell} reads its script`, { skip: skipWithout(shell) }, async () => {
    const { status, stderr } = spawnSync(shell, ["-n", "/dev/stdin"], {
      input: await scriptOf(shell),
      encoding: "utf8",
    });
    assert.deepEqual([status, stderr], [0, ""]);
  });

test("quotes, colons and backslashes of the texts are escaped in every script", async () => {
  const zsh = await scriptOf("zsh");
  assert.equal((zsh.replaceAll("'\\''", "").match(/'/g) ?? []).length % 2, 0);
  assert.match(
    await scriptOf("fish"),
    /^complete -c weir -n '__fish_seen_subcommand_from token' -o scopes -r -d /m,
  );
});

test("another shell, or none, is a usage error that names those that there are", async () => {
  const outline = await commandLine();
  for (const words of [[], ["tcsh"], ["bash", "more"], ["constructor"]])
    assert.throws(() => completionScript(words, outline), /bash\|zsh\|fish/);
});

test("the manual page is good roff and has every command", { skip: skipWithout("groff") }, async () => {
  const page = manPage(await commandLine());
  const { status, stdout, stderr } = spawnSync("groff", ["-man", "-ww", "-Tutf8", "-P-cbou"], {
    input: page,
    encoding: "utf8",
  });
  assert.deepEqual([status, stderr], [0, ""]);
  const { commands } = await commandLine();
  for (const { name, summary } of commands) assert.ok(stdout.replaceAll(/\s+/g, " ").includes(summary), name);
  assert.ok(!/\\[a-z]/.test(stdout), "no escape is left");
});
