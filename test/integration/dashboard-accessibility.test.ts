/** Every page of the built-in dashboard held against the rules of axe-core: in both themes, wide and narrow, in three scripts. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import type { Language } from "#lib/languages.ts";
import type { Catalogue } from "#lib/words.ts";
import { en } from "#ui/words/en/index.ts";
import { fa } from "#ui/words/fa/index.ts";
import { zh } from "#ui/words/zh/index.ts";
import { noBrowser } from "../support/browser.ts";
import { FULL_ADMIN_SECRET, FULL_SECRET } from "../support/full-core.ts";
import { openFullDashboard, type FullDashboard } from "../support/full-dashboard.ts";

const AXE = readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");
/** The worse two of four. */
const FAULTS = ["serious", "critical"];
const PAGES = Object.keys(en).filter((key) => key.startsWith("page."));
const LOOKS: readonly (readonly [Language, Catalogue, string])[] = [
  ["en", en, "en-GB"],
  ["zh", zh, "zh-CN"],
  ["fa", fa, "fa-IR"],
];

/** Buttons that open one, by their page. */
const DIALOGS = [
  ["page.users", "users.new"],
  ["page.inbounds", "setup.newListener"],
  ["page.inbounds", "setup.newNodes"],
  ["page.tokens", "tokens.new"],
  ["page.settings", "settings.restart"],
  ["page.settings", "restore.open"],
] as const;

interface Violation {
  readonly id: string;
  readonly impact: string;
  readonly help: string;
  readonly nodes: readonly { readonly html: string }[];
}

const options = { skip: noBrowser };
let world: FullDashboard;
before(async () => {
  if (noBrowser === false) world = await openFullDashboard((socket) => void socket.resume());
});
after(() => world?.[Symbol.asyncDispose]());

async function sessionBy(secret: string): Promise<string> {
  const headers = { authorization: `Bearer ${secret}` };
  const answer = await fetch(`${world.full.base}/api/svc/session`, { method: "POST", headers });
  assert.equal(answer.status, 201);
  const { token }: { readonly token: string } = await answer.json();
  return token;
}

/** As a page that was signed in and loaded again. */
async function signIn(page: Page): Promise<void> {
  const sessions = {
    "weir.session": await sessionBy(FULL_SECRET),
    "weir.session.admin": await sessionBy(FULL_ADMIN_SECRET),
  };
  await page.addInitScript(`Object.assign(sessionStorage, ${JSON.stringify(sessions)})`);
  await page.goto(`${world.full.base}/ui/#/overview`);
  await page.evaluate(AXE);
}

async function faultsOf(page: Page): Promise<readonly string[]> {
  const { violations, passes } = (await page.evaluate(
    "axe.run({ resultTypes: ['violations', 'passes'] })",
  )) as {
    violations: readonly Violation[];
    passes: readonly unknown[];
  };
  assert.ok(passes.length > 0, "no rule was tried");
  return violations
    .filter(({ impact }) => FAULTS.includes(impact))
    .map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html).join(" ")}`);
}

function textOf(texts: Catalogue, key: string): string {
  const text = texts[key];
  assert.ok(typeof text === "string", key);
  return text;
}

for (const [language, texts, locale] of LOOKS)
  for (const colorScheme of ["light", "dark"] as const)
    test(`${language}, ${colorScheme}: every page, wide and narrow, and dialogs`, options, async () => {
      await using watched = await world.browser.open({ width: 1280, locale, colorScheme });
      const { page } = watched;
      await signIn(page);
      const faults: string[] = [];
      for (const key of PAGES) {
        await page.evaluate(`location.hash = "#/${key.slice("page.".length)}"`);
        await page.getByRole("heading", { name: textOf(texts, key), level: 1, exact: true }).waitFor();
        for (const width of [1280, 360]) {
          await page.setViewportSize({ width, height: 720 });
          faults.push(...(await faultsOf(page)).map((fault) => `${key} at ${width}: ${fault}`));
        }
      }
      for (const [key, button] of DIALOGS) {
        await page.evaluate(`location.hash = "#/${key.slice("page.".length)}"`);
        await page.getByRole("heading", { name: textOf(texts, key), level: 1, exact: true }).waitFor();
        await page
          .getByRole("button", { name: textOf(texts, button), exact: true })
          .first()
          .click();
        await page.getByRole("dialog").waitFor();
        faults.push(...(await faultsOf(page)).map((fault) => `${button}: ${fault}`));
        await page.keyboard.press("Escape");
        await page.getByRole("dialog").waitFor({ state: "detached" });
      }
      assert.deepEqual(faults, []);
    });
