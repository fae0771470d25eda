/** Every table of the dashboard is put in order by each of its columns, by keys alone, in a real browser. */
import assert from "node:assert/strict";
import { connect } from "node:net";
import { after, before, test } from "node:test";
import type { Locator, Page } from "playwright-core";
import { noBrowser } from "../support/browser.ts";
import { FULL_ADMIN_SECRET } from "../support/full-core.ts";
import { openFullDashboard, type FullDashboard } from "../support/full-dashboard.ts";

const options = { skip: noBrowser };
let world: FullDashboard;
before(async () => {
  if (noBrowser !== false) return;
  world = await openFullDashboard((socket) => void socket.resume());
  for (const name of ["gamma", "delta"]) await writeAudit(name);
});
after(() => world?.[Symbol.asyncDispose]());

/** Pages with a table, and how many of its columns have an order. Their values may change while the test looks at them: of some only the heads are compared. */
const TABLES = [
  ["rules", 6, true],
  ["inbounds", 4, true],
  ["connections", 6, false],
  ["overview", 4, false],
  ["users", 8, true],
  ["audit", 5, true],
] as const;
/** Pages with lists that have no heads. */
const LISTS = ["usage", "tokens"] as const;

/** An entry of the audit log, and a token. */
async function writeAudit(name: string): Promise<void> {
  const answer = await fetch(`${world.full.base}/api/svc/tokens`, {
    method: "POST",
    headers: { authorization: `Bearer ${FULL_ADMIN_SECRET}` },
    body: JSON.stringify({ name, scopes: ["read"] }),
  });
  assert.equal(answer.status, 201);
}

/** Pages are opened before they are signed in. */
const unexpected = (complaints: readonly string[]) => complaints.filter((text) => !text.includes("401"));

async function openPage(hash: string) {
  const watched = await world.open("overview");
  await watched.page.getByRole("heading", { name: "Overview" }).waitFor();
  await watched.page.goto(`${world.full.base}/ui/#/${hash}`);
  return watched;
}

async function giveAdminSecret(page: Page): Promise<void> {
  await page.getByLabel("Admin secret").fill(FULL_ADMIN_SECRET);
  await page.keyboard.press("Enter");
}

async function columnOf(table: Locator, at: number): Promise<readonly string[]> {
  const rows = await table.locator("[role=row]:not(.row-head), tbody tr").all();
  const texts = await Promise.all(rows.map((row) => row.locator("[role=cell], td").nth(at).innerText()));
  return texts.filter((text, index) => text !== texts[index - 1]);
}

async function checkTable(table: Locator, count: number, hasStillRows: boolean): Promise<void> {
  const heads = table.locator("[role=columnheader][aria-sort], th[aria-sort]");
  assert.equal(await heads.count(), count);
  for (let at = 0; at < count; at++) {
    const head = heads.nth(at);
    const found: (readonly string[])[] = [];
    for (const state of ["ascending", "descending", "none"]) {
      await head.getByRole("button").press("Enter");
      assert.equal(await head.getAttribute("aria-sort"), state);
      found.push(await columnOf(table, at));
    }
    const [up = [], down = []] = found;
    if (!hasStillRows) continue;
    const isLastEither = up.length > 1 && up.at(-1) === down.at(-1); // of rows that have nothing to compare
    const [some, others] = isLastEither ? [up.slice(0, -1), down.slice(0, -1)] : [up, down];
    assert.deepEqual(others, some.toReversed(), `column ${at}`);
  }
}

for (const [hash, count, hasStillRows] of TABLES)
  test(`${hash}: each column orders the table, up and down`, options, async () => {
    const { mixed } = world.full;
    const held = connect(mixed, "127.0.0.1"); // for the tables of connections
    held.on("error", () => {}).write(`CONNECT a.test:${world.origin.port} HTTP/1.1\r\n\r\n`);
    await using watched = await openPage(hash);
    const { page } = watched;
    if (hash === "users" || hash === "audit") await giveAdminSecret(page);
    const table = page.getByRole("table").last();
    await table.locator("[role=cell], td").first().waitFor({ state: "attached" });
    await checkTable(table, count, hasStillRows);
    held.destroy();
    assert.deepEqual(unexpected(watched.complaints), []);
  });

test("an order outlasts a look at another page, and a narrow page has it as a list", options, async () => {
  await using watched = await openPage("rules");
  const { page } = watched;
  const head = page.getByRole("columnheader", { name: "Hits" });
  await head.getByRole("button").click();
  await page.goto(`${world.full.base}/ui/#/groups`);
  await page.getByRole("heading", { name: "Groups", level: 1 }).waitFor();
  await page.goto(`${world.full.base}/ui/#/rules`);
  assert.equal(await head.getAttribute("aria-sort"), "ascending");
  await page.setViewportSize({ width: 360, height: 740 });
  const list = page.getByLabel("Order");
  assert.equal(await list.inputValue(), "3 up");
  await list.selectOption("0 down");
  assert.match(await page.locator(".rows-rules .row:not(.row-head)").first().innerText(), /Match/);
});

for (const hash of LISTS)
  test(`${hash}: lists without heads have their orders in a list`, options, async () => {
    await using watched = await openPage(hash);
    const { page } = watched;
    if (hash === "tokens") await giveAdminSecret(page);
    const names = () => page.locator("ul.lines[aria-label] > li .line-main > .text").allInnerTexts();
    const list = page.getByLabel("Order").first();
    await list.selectOption("0 up");
    const up = await names();
    await list.selectOption("0 down");
    assert.deepEqual(await names(), up.toReversed());
    assert.ok(up.length > 1);
    assert.deepEqual(unexpected(watched.complaints), []);
  });

test("five thousand rows are put in order within a tenth of a second of work", options, async (context) => {
  await using watched = await openPage("rules");
  const { page } = watched;
  await page.route(/\/rules$/, async (route) => {
    const rules = Array.from({ length: 5000 }, (_, index) => ({
      index,
      type: "DOMAIN-SUFFIX",
      payload: `host-${(index * 7919) % 5000}.example`,
      proxy: `node ${index % 40}`,
      size: -1,
      extra: { disabled: false, hitCount: (index * 31) % 977, hitAt: "0001-01-01T00:00:00Z" },
    }));
    await route.fulfill({ json: { rules } });
  });
  await page.getByRole("button", { name: "Refresh" }).click();
  await page.getByText("5,000", { exact: false }).first().waitFor();
  const measured = (await page.evaluate(`(async () => {
    const times = [];
    for (let at = 0; at < 8; at++) {
      const button = document.querySelectorAll(".rows-rules .head-button")[1];
      const began = performance.now();
      button.click();
      await new Promise((resolve) => setTimeout(resolve));
      times.push(performance.now() - began);
    }
    return times;
  })()`)) as readonly number[];
  const best = Math.min(...measured.filter((_, at) => at % 3 !== 2)); // every third press gives the order up
  context.diagnostic(`${measured.map((ms) => ms.toFixed(1)).join(", ")} ms`);
  assert.ok(best < 100, `${best} ms`);
});
