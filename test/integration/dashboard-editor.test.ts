/** The configuration editor of the built-in dashboard, in a real browser against the real program and its file. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { noBrowser, openBrowser, type Browser } from "../support/browser.ts";
import { freePorts } from "../support/free-ports.ts";
import { startCore, type Core } from "../support/start-core.ts";
import { until } from "../support/until.ts";

const options = { skip: noBrowser };
let browser: Browser;
before(async () => {
  if (noBrowser === false) browser = await openBrowser();
});
after(() => browser?.[Symbol.asyncDispose]());

interface Bench extends AsyncDisposable {
  readonly base: string;
  readonly core: Core;
  fileText(): string;
  mode(): Promise<string>;
}

async function openBench(): Promise<Bench> {
  const [mixed, controller] = (await freePorts(2)) as [number, number];
  const text = `# kept as it is\nmixed-port: ${mixed}\nexternal-controller: 127.0.0.1:${controller}\nmode: rule\nrules:\n  - MATCH,DIRECT\n`;
  const core = await startCore(text);
  const base = `http://127.0.0.1:${controller}`;
  return {
    base,
    core,
    fileText: () => readFileSync(join(core.home, "config.yaml"), "utf8"),
    mode: async () => ((await (await fetch(`${base}/configs`)).json()) as { mode: string }).mode,
    [Symbol.asyncDispose]: () => core[Symbol.asyncDispose](),
  };
}

const textArea = (page: Page) => page.getByRole("textbox", { name: "Text of the configuration file" });
const press = (page: Page, name: string) => page.getByRole("button", { name, exact: true }).click();
const seen = (page: Page, text: string | RegExp) => page.getByText(text).first().waitFor();

async function open(page: Page, { base }: Bench): Promise<string> {
  await page.goto(`${base}/ui/#/editor`);
  await textArea(page).waitFor();
  await seen(page, "No errors and no warnings");
  return textArea(page).inputValue();
}

test(
  "errors are marked as typed, what can stand there is offered, what a key means is told",
  options,
  async () => {
    await using bench = await openBench();
    await using watched = await browser.open();
    const { page, complaints } = watched;
    const text = await open(page, bench);
    assert.equal(text, bench.fileText());
    await textArea(page).fill(text.replace("mode: rule", "mode: sideways\nno-such-key: 1"));
    await seen(page, "1 error, 1 warning");
    assert.equal(await page.locator(".gutter-line.error").textContent(), "4");
    assert.equal(await page.locator(".gutter-line.warning").textContent(), "5");
    assert.ok(await page.getByRole("button", { name: "Review and apply" }).isDisabled());
    await page.getByRole("button", { name: /^5:1/ }).click();
    const caret = await page.evaluate("document.querySelector('textarea').selectionStart");
    assert.equal(
      caret,
      (await textArea(page).inputValue()).indexOf("no-such-key"),
      "the remark leads to its place",
    );

    await textArea(page).fill(text);
    await page.keyboard.press("Control+End");
    await page.keyboard.type("dns:\n  enh");
    await page.getByRole("option", { name: "enhanced-mode:" }).waitFor();
    await page.keyboard.press("Enter");
    await page.keyboard.type("fake");
    await page.keyboard.press("Enter");
    assert.equal(await textArea(page).inputValue(), `${text}dns:\n  enhanced-mode: fake-ip`);
    await page.locator(".about").getByText("enhanced-mode").waitFor();
    await page.keyboard.press("Control+z");
    await page.keyboard.press("Control+z");
    assert.notEqual(
      await textArea(page).inputValue(),
      `${text}dns:\n  enhanced-mode: fake-ip`,
      "undone like typing",
    );
    await page.keyboard.press("Control+Space");
    await page.keyboard.press("Escape");
    assert.equal(await page.getByRole("option").count(), 0);
    assert.deepEqual(complaints, []);
  },
);

test("a change is shown, tried, kept as a version, and taken back", options, async () => {
  await using bench = await openBench();
  await using watched = await browser.open();
  const { page, complaints } = watched;
  const before = await open(page, bench);
  await textArea(page).fill(before.replace("mode: rule", "mode: direct"));
  await page.getByRole("link", { name: "Rules" }).click();
  await seen(page, "1 rule");
  await page.getByRole("link", { name: "Configuration" }).click();
  await seen(page, /changed, not applied/); // what was typed is still there
  await press(page, "Review and apply");
  const changes = page.getByRole("region", { name: "Changes to the file" });
  assert.match(String(await changes.locator(".removed").textContent()), /mode: rule/);
  assert.match(String(await changes.locator(".added").textContent()), /mode: direct/);
  await press(page, "Apply for 60 seconds");
  await seen(page, /the old configuration comes back in \d+ seconds/);
  await until("it is in force", async () => (await bench.mode()) === "direct");
  assert.equal(bench.fileText(), before, "a trial is not written");
  await press(page, "Take it back");
  await seen(page, "The old configuration is in force again");
  await until("the old one is in force", async () => (await bench.mode()) === "rule");

  await textArea(page).fill(before.replace("mode: rule", "mode: global"));
  await press(page, "Review and apply");
  await press(page, "Apply for 60 seconds");
  await press(page, "Keep it");
  await seen(page, "In force, and written into the file");
  assert.equal(bench.fileText(), before.replace("mode: rule", "mode: global"));
  await press(page, "Compare version 1");
  await press(page, "Apply and keep");
  await until("the first version is in the file", () => bench.fileText() === before);
  await seen(page, "Version 2");
  assert.equal(await textArea(page).inputValue(), before);
  assert.equal(await bench.mode(), "rule");
  assert.deepEqual(complaints, []);
});

test("who comes second is told, and loses nothing that was typed", options, async () => {
  await using bench = await openBench();
  await using watched = await browser.open({ width: 360, height: 720, colorScheme: "dark" });
  const { page } = watched;
  const before = await open(page, bench);
  bench.core.write(before.replace("# kept", "# changed by another"));
  await textArea(page).fill(before.replace("mode: rule", "mode: direct"));
  await press(page, "Review and apply");
  await press(page, "Apply and keep");
  await seen(page, /Nothing was changed: /);
  await page.keyboard.press("Escape");
  assert.match(await textArea(page).inputValue(), /mode: direct/);
  const excess = await page.evaluate("document.querySelector('main').scrollWidth - innerWidth");
  assert.equal(excess, 0);
  await press(page, "Discard my changes");
  await until("the file as it is", async () => (await textArea(page).inputValue()) === bench.fileText());
});
