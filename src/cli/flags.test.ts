import assert from "node:assert/strict";
import { test } from "node:test";
import { parseFlags, UsageError } from "./flags.ts";
import { RUN_FLAGS } from "./run-flags.ts";

const parse = (args: string[], env = {}) => parseFlags(args, RUN_FLAGS, env);

test("one or two dashes, value behind a space or an equals sign", () => {
  for (const args of [["-f", "a.yaml"], ["--f", "a.yaml"], ["-f=a.yaml"], ["--f=a.yaml"]])
    assert.equal(parse(args).text("f"), "a.yaml");
  assert.equal(parse(["-secret=a=b"]).text("secret"), "a=b");
  assert.equal(parse(["-f", "-"]).text("f"), "-");
});

test("switches take no word, but may be set with an equals sign", () => {
  assert.equal(parse(["-t"]).on("t"), true);
  assert.equal(parse(["-t=false"]).on("t"), false);
  assert.deepEqual(parse(["-t", "explain", "-x"]).rest, ["explain", "-x"]);
});

test("a non-empty flag wins over the environment", () => {
  const env = { CLASH_OVERRIDE_SECRET: "from env", CLASH_HOME_DIR: "/home" };
  assert.equal(parse(["-secret", "flag"], env).text("secret"), "flag");
  assert.equal(parse(["-secret", ""], env).text("secret"), "from env");
  assert.equal(parse([], env).text("d"), "/home");
  assert.equal(parse([]).text("d"), null);
});

test("mistakes are usage errors", () => {
  for (const args of [["-nope"], ["-f"], ["-t=maybe"]]) assert.throws(() => parse(args), UsageError);
});
