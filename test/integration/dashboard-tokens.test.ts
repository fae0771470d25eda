/** Tokens, the export of the audit log and the backup in the built-in dashboard, in a real browser against the real program. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { noBrowser } from "../support/browser.ts";
import { FULL_ADMIN_SECRET } from "../support/full-core.ts";
import { openFullDashboard, type FullDashboard } from "../support/full-dashboard.ts";

const options = { skip: noBrowser };
let world: FullDashboard;
before(async () => {
  if (noBrowser === false) world = await openFullDashboard(() => {});
});
after(() => world?.[Symbol.asyncDispose]());

async function openAdmin(hash: string) {
  const watched = await world.open(hash);
  await watched.page.getByLabel("Admin secret").fill(FULL_ADMIN_SECRET);
  await watched.page.keyboard.press("Enter");
  return watched;
}

const statusOf = async (path: string, token: string): Promise<number> =>
  (await fetch(`${world.full.base}${path}`, { headers: { authorization: `Bearer ${token}` } })).status;

const press = (page: Page, name: string) => page.getByRole("button", { name, exact: true }).click();

/** Makes one by the form and answers with it, as it is shown. */
async function make(page: Page, name: string, fill: () => Promise<unknown>): Promise<string> {
  await press(page, "New token");
  const form = page.getByRole("dialog");
  await form.getByLabel("Name").fill(name);
  await fill();
  await form.getByRole("button", { name: "Create" }).click();
  const made = page.getByRole("dialog", { name: `${name} is made` });
  const token = String(await made.locator("code").textContent());
  await made.getByRole("button", { name: "Done" }).click();
  return token;
}

test("a token is made with its rights, shown once, used, and revoked", options, async () => {
  await using watched = await openAdmin("tokens");
  const { page } = watched;
  await page.getByText("No tokens yet").waitFor();
  const monitor = await make(page, "monitor", () => Promise.resolve());
  await page.getByText("monitor", { exact: false }).first().waitFor();
  assert.deepEqual(
    [await statusOf("/configs", monitor), await statusOf("/api/admin/users", monitor)],
    [200, 403],
  );
  const text = String(await page.evaluate("document.documentElement.outerHTML"));
  assert.ok(!text.includes(monitor), "it is shown once");

  const shop = await make(page, "shop", async () => {
    const form = page.getByRole("dialog");
    await form.getByRole("switch", { name: "read:" }).click();
    await form.getByRole("button", { name: "Create" }).click();
    await form.getByText("choose at least one right").waitFor();
    await form.getByRole("switch", { name: "users:" }).click();
    await form.getByLabel("Only users of").selectOption("edge");
    await form.getByLabel("Expires").fill("2040-01-02T03:04");
  });
  assert.deepEqual([await statusOf("/configs", shop), await statusOf("/api/admin/users", shop)], [403, 200]);

  await press(page, "Revoke monitor");
  await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
  await page.getByText("monitor is revoked").waitFor();
  assert.equal(await statusOf("/configs", monitor), 401);
  assert.deepEqual(
    watched.complaints.filter((line) => !/401 \(Unauthorized\)/.test(line)),
    [],
  );
});

test("the audit log says who made tokens, and comes as a file", options, async () => {
  await using watched = await openAdmin("audit");
  const { page } = watched;
  await page.getByText(/the chain is whole/).waitFor();
  await page
    .getByRole("cell", { name: /token\.create/ })
    .first()
    .waitFor();
  const [download] = await Promise.all([page.waitForEvent("download"), press(page, "Download all")]);
  const lines = readFileSync(await download.path(), "utf8")
    .trim()
    .split("\n");
  assert.ok(lines.length >= 3 && lines.every((line) => typeof JSON.parse(line) === "object"));
});

test("a backup is downloaded whole", options, async () => {
  await using watched = await world.open("settings");
  const { page, complaints } = watched;
  await page.getByText("weir restore FILE").waitFor();
  const [download] = await Promise.all([page.waitForEvent("download"), press(page, "Download a backup")]);
  assert.match(download.suggestedFilename(), /^weir-\d{4}-\d\d-\d\d\.backup$/);
  const file = readFileSync(await download.path());
  const [head = ""] = file.toString("latin1").split("\n", 1);
  const { bytes } = JSON.parse(head.replace("weir-backup 1 ", "")) as { bytes: number };
  assert.equal(file.length, head.length + 1 + bytes + 32);
  assert.deepEqual(
    complaints.filter((line) => !/401 \(Unauthorized\)/.test(line)),
    [],
  );
});
