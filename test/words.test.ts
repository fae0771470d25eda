/** The texts of the dashboard and of the pages that the program writes itself: whole in every language, and all of use. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { LANGUAGES, type Language } from "#lib/languages.ts";
import type { Catalogue, Text } from "#lib/words.ts";
import * as pages from "#pages/words/index.ts";
import { en } from "#ui/words/en/index.ts";
import { fa } from "#ui/words/fa/index.ts";
import { ru } from "#ui/words/ru/index.ts";
import { zh } from "#ui/words/zh/index.ts";

const root = join(import.meta.dirname, "..");
const DASHBOARD: Readonly<Record<Language, Catalogue>> = { en, zh, fa, ru };

const PAGES: Readonly<Record<Language, Catalogue>> = pages;

/** Each text with its languages, what makes use of it, and the files that do. */
const CATALOGUES = [
  { name: "dashboard", texts: DASHBOARD, sources: "ui/**/*.{ts,tsx}" },
  { name: "pages", texts: PAGES, sources: "src/{governance,api,pages}/**/*.ts" },
] as const;

const formsOf = (text: Text): readonly string[] => (typeof text === "string" ? [text] : Object.values(text));
const namesIn = (form: string): readonly string[] => (form.match(/\{\w+\}/g) ?? []).sort();
/** Forms such as `one` may say their number in words. */
const withoutCount = (names: readonly string[]) => names.filter((name) => name !== "{count}");

for (const { name, texts, sources } of CATALOGUES) {
  const keys = Object.keys(texts.en);

  for (const language of LANGUAGES)
    test(`${name}: ${language} has every text, with its parameters and the language's plural forms`, () => {
      const other = texts[language];
      assert.deepEqual(Object.keys(other).toSorted(), keys.toSorted());
      const categories = new Intl.PluralRules(language).resolvedOptions().pluralCategories.toSorted();
      for (const key of keys) {
        const [english, text] = [texts.en[key], other[key]];
        assert.ok(english !== undefined && text !== undefined);
        if (typeof text !== "string") assert.deepEqual(Object.keys(text).toSorted(), categories, key);
        const names = withoutCount(namesIn(formsOf(english).at(-1) ?? ""));
        for (const form of formsOf(text)) {
          assert.notEqual(form.trim(), "", key);
          assert.deepEqual(withoutCount(namesIn(form)), names, `${key}: ${form}`);
          assert.equal(form.split("`").length, formsOf(english)[0]?.split("`").length, `code in ${key}`);
        }
      }
    });

  test(`${name}: every text is of use`, () => {
    const used = globSync(sources, {
      cwd: root,
      exclude: (file) => /words\/(?:en|zh|fa|ru)\b/.test(file),
    })
      .map((file) => readFileSync(join(root, file), "utf8"))
      .join("\n");
    assert.deepEqual(
      keys.filter((key) => !used.includes(`"${key}"`)),
      [],
    );
  });
}

/** Texts between tags, and those of attributes that people see or hear. */
const LITERALS = [
  />[^<>{}=;()]*\p{L}{2,}[^<>{}=;()]*<\//gu,
  /\b(?:label|title|aria-label|placeholder|note|subject|absent|hint)="[^"]*\p{L}{2,}/gu,
];
/** Names that are the same in every language. */
const NAMES = [">weir</", ">udp</", 'placeholder="www.example.org'];

test("the dashboard's sources hold no text beside the catalogues", () => {
  const found = globSync("ui/**/*.tsx", { cwd: root }).flatMap((file) => {
    const source = readFileSync(join(root, file), "utf8");
    return LITERALS.flatMap((pattern) => source.match(pattern) ?? [])
      .filter((text) => !NAMES.includes(text))
      .map((text) => `${file}: ${text.trim()}`);
  });
  assert.deepEqual(found, []);
});
