/** The nodes of a fleet in the built-in dashboard, in a real browser against real nodes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { noBrowser, openBrowser } from "../support/browser.ts";
import { startNode } from "../support/fleet-nodes.ts";
import { startFleetDatabase } from "../support/fleet.ts";
import { ADMIN_SECRET, CONTROLLER_SECRET } from "../support/managed-core.ts";
import { noPostgres } from "../support/postgres.ts";

const skip = noBrowser === false ? (noPostgres ?? false) : noBrowser;

test("nodes show with their state, and are drained and put back", { skip }, async () => {
  await using database = await startFleetDatabase();
  const settings = await database.fresh();
  await using a = await startNode({ ...settings("fra-1"), labels: { region: "eu" } });
  await using _ = await startNode(settings("ams-1"));
  await using browser = await openBrowser();
  await using watched = await browser.open();
  const { page } = watched;
  await page.goto(`${a.core.url}/ui/#/nodes`);
  await page.getByLabel("Secret").fill(CONTROLLER_SECRET);
  await page.keyboard.press("Enter");
  await page.getByLabel("Admin secret").fill(ADMIN_SECRET);
  await page.keyboard.press("Enter");
  await page.getByText("2 nodes: 2 live").waitFor();
  await page.getByText("fra-1 (this one)").waitFor();
  await page.getByRole("button", { name: "Drain ams-1" }).click();
  await page.getByText("2 nodes: 1 live, 1 draining").waitFor();
  await page.getByRole("button", { name: "Resume ams-1" }).click();
  await page.getByText("2 nodes: 2 live").waitFor();
  await page.getByRole("searchbox").fill("eu");
  await page.getByRole("button", { name: "Drain ams-1" }).waitFor({ state: "detached" });
  assert.deepEqual(
    watched.complaints.filter((text) => !text.includes("401 (Unauthorized)")),
    [],
  );
});
