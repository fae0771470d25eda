import assert from "node:assert/strict";
import { test } from "node:test";
import { acceptedLanguages, languageOf } from "./languages.ts";
import { translator } from "./words.ts";

test("the first language of ours is taken, in the order of the weights", () => {
  for (const [header, language] of [
    [undefined, "en"],
    ["", "en"],
    ["de, fr", "en"],
    ["zh-CN,zh;q=0.9", "zh"],
    ["de, en;q=0.8, zh;q=0.1", "en"],
    ["en;q=0.1, fa-IR;q=0.5", "fa"],
    ["ru;q=0, zh;q=0.2", "zh"],
    ["RU-ru", "ru"],
    [";;;q=,, ,q=1", "en"],
    [`${"de,".repeat(5_000)}ru`, "en"],
  ] as const)
    assert.equal(languageOf(acceptedLanguages(header)), language, header ?? "none");
});

test("parameters are put in, numbers as the language writes them, and the count picks the form", () => {
  const english = {
    plain: "as it is",
    named: "{name} has {bytes}",
    files: { one: "{count} file", other: "{count} files" },
  } as const;
  const t = translator<typeof english>("en", english);
  assert.equal(t("plain"), "as it is");
  assert.equal(t("named", { name: "{bytes}", bytes: 1234.5 }), "{bytes} has 1,234.5", "once, not again");
  assert.deepEqual(
    [0, 1, 2000].map((count) => t("files", { count })),
    ["0 files", "1 file", "2,000 files"],
  );
  const persian = translator<typeof english>("fa", { plain: "", named: "", files: { other: "{count}" } });
  assert.equal(persian("files", { count: 12 }), "۱۲");
});
