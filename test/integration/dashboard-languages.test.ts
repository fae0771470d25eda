/** The built-in dashboard in each of its languages, in a real browser against the real program. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { directionOf, LANGUAGE_NAMES, LANGUAGES, type Language } from "#lib/languages.ts";
import type { Catalogue } from "#lib/words.ts";
import { en } from "#ui/words/en/index.ts";
import { fa } from "#ui/words/fa/index.ts";
import { ru } from "#ui/words/ru/index.ts";
import { zh } from "#ui/words/zh/index.ts";
import { noBrowser, openBrowser, type Browser } from "../support/browser.ts";
import { freePorts } from "../support/free-ports.ts";
import { startCore, type Core } from "../support/start-core.ts";

const CATALOGUES: Readonly<Record<Language, Catalogue>> = { en, zh, fa, ru };
const LOCALES: Readonly<Record<Language, string>> = { en: "en-GB", zh: "zh-CN", fa: "fa-IR", ru: "ru-RU" };
const PAGES = Object.keys(en).filter((key) => key.startsWith("page."));

const options = { skip: noBrowser };
let browser: Browser;
let core: Core;
let base: string;
before(async () => {
  if (noBrowser !== false) return;
  const [mixed, controller] = (await freePorts(2)) as [number, number];
  base = `http://127.0.0.1:${controller}`;
  browser = await openBrowser();
  core = await startCore(`
mixed-port: ${mixed}
external-controller: 127.0.0.1:${controller}
traffic-control: { enabled: true, devices: [{ id: tv, source-cidrs: [192.0.2.1/32], quota: { total-bytes: 1000000, window: 1d } }] }
proxies: [{ name: Node 1, type: socks5, server: 127.0.0.1, port: 1 }]
proxy-groups: [{ name: Proxy, type: select, proxies: [DIRECT, Node 1] }]
rules: ["DOMAIN-SUFFIX,good.test,Proxy", "MATCH,DIRECT"]
`);
});
after(async () => {
  await browser?.[Symbol.asyncDispose]();
  await core?.[Symbol.asyncDispose]();
});

/** Texts in sight, and those that a screen reader says, by what they are. */
const SEEN = `[...document.querySelectorAll("body *")].filter((one) => one.checkVisibility()).flatMap((one) => [
  ...[...one.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data.trim()),
  ...["aria-label", "title", "placeholder"].map((name) => one.getAttribute(name) ?? ""),
]).filter((text) => text !== "")`;

/** English texts that another language has words for. */
function untranslated(language: Language, seen: readonly string[]): readonly string[] {
  const texts = CATALOGUES[language];
  const english = Object.entries(en).filter(
    ([key, text]) => typeof text === "string" && texts[key] !== text && !text.includes("{"),
  );
  const known = new Set(english.map(([, text]) => text));
  return seen.filter((text) => known.has(text as never));
}

async function goTo(page: Page, key: string, language: Language): Promise<void> {
  await page.evaluate(`location.hash = "#/${key.slice("page.".length)}"`);
  const title = CATALOGUES[language][key];
  assert.ok(typeof title === "string");
  await page.getByRole("heading", { name: title, level: 1, exact: true }).waitFor();
}

for (const language of LANGUAGES)
  test(`${language}: as the browser is set, every page, wide and narrow`, options, async () => {
    await using watched = await browser.open({ width: 1280, locale: LOCALES[language] });
    const { page, complaints } = watched;
    await page.goto(`${base}/ui/#/overview`);
    for (const width of [1280, 360]) {
      await page.setViewportSize({ width, height: 720 });
      for (const key of PAGES) {
        await goTo(page, key, language);
        const seen = (await page.evaluate(SEEN)) as readonly string[];
        if (language !== "en") assert.deepEqual(untranslated(language, seen), [], `${key} at ${width}`);
        for (const box of ["document.documentElement", "document.querySelector('main')"]) {
          const excess = await page.evaluate(`${box}.scrollWidth - ${box}.clientWidth`);
          assert.equal(excess, 0, `${key} at ${width}: ${box} sticks out`);
        }
      }
    }
    const { lang, dir } = (await page.evaluate(
      "({ lang: document.documentElement.lang, dir: document.documentElement.dir })",
    )) as { lang: string; dir: string };
    assert.deepEqual([lang, dir], [language, directionOf(language)]);
    // that nothing is managed is found out by asking
    assert.deepEqual(
      complaints.filter((text) => !text.includes("404 (Not Found)")),
      [],
    );
  });

test(
  "a language is chosen by its own name, at once, and kept; from right to left the page is mirrored",
  options,
  async () => {
    await using watched = await browser.open({ width: 1280, locale: "de-DE" });
    const { page } = watched;
    await page.goto(`${base}/ui/#/settings`);
    await page.getByRole("heading", { name: en["page.settings"], level: 1 }).waitFor();
    const left = () => page.evaluate("document.querySelector('nav').getBoundingClientRect().left");
    const before = Number(await left());
    await page.getByLabel(en["settings.language"]).selectOption({ label: LANGUAGE_NAMES.fa });
    await page.getByRole("heading", { name: fa["page.settings"], level: 1 }).waitFor();
    assert.ok(before < 300 && Number(await left()) > 900, "the navigation stands on the other side");
    await page.reload();
    await page.getByRole("heading", { name: fa["page.settings"], level: 1 }).waitFor();
    await page.getByLabel(fa["settings.language"]).selectOption({ label: fa["settings.asBrowser"] });
    await page.getByRole("heading", { name: en["page.settings"], level: 1 }).waitFor();
  },
);

test("where a language cannot be fetched the page stays as it is and says so", options, async () => {
  await using watched = await browser.open({ locale: "en-US" });
  const { page } = watched;
  await page.goto(`${base}/ui/#/settings`);
  await page.getByRole("heading", { name: en["page.settings"], level: 1 }).waitFor();
  await page.route("**/*.js", (route) => route.abort());
  await page.getByLabel(en["settings.language"]).selectOption("zh");
  await page.getByText(en["settings.languageFailed"]).waitFor();
  await page.getByRole("heading", { name: en["page.settings"], level: 1 }).waitFor();
  assert.equal(await page.getByLabel(en["settings.language"]).inputValue(), "auto");
});
