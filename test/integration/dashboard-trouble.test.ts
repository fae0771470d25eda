/** What the built-in dashboard shows when something is wrong, in a real browser against the real program. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Page, Route } from "playwright-core";
import { noBrowser } from "../support/browser.ts";
import { freePorts } from "../support/free-ports.ts";
import { FULL_ADMIN_SECRET } from "../support/full-core.ts";
import { openFullDashboard, type FullDashboard } from "../support/full-dashboard.ts";
import { startCore } from "../support/start-core.ts";

const options = { skip: noBrowser };

let world: FullDashboard;
before(async () => {
  if (noBrowser !== false) return;
  world = await openFullDashboard((socket) => void socket.on("error", () => {}));
});
after(() => world?.[Symbol.asyncDispose]());

const alertOf = (page: Page, text: string | RegExp) => page.getByRole("alert").filter({ hasText: text });

/** An answer of the Controller that it does not give of itself. */
const refuse =
  (status: number, message: string) =>
  (route: Route): Promise<void> =>
    route.fulfill({ status, json: { message } });

test("what cannot be loaded is shown on every page, and announced to screen readers", options, async () => {
  const paths: readonly (readonly [page: string, glob: string])[] = [
    ["overview", "**/configs"],
    ["settings", "**/configs"],
    ["groups", "**/providers/proxies"],
    ["groups", "**/proxies"],
    ["rules", "**/providers/rules"],
    ["rules", "**/rules"],
    ["usage", "**/traffic-control/status"],
    ["usage", "**/reports?*"],
    ["usage", "**/reports/summary?*"],
    ["users", "**/api/admin/overview"],
  ];
  await using watched = await world.open("logs");
  const { page } = watched;
  await page.getByRole("heading", { name: "Logs" }).waitFor();
  for (const [hash, glob] of paths) {
    await page.route(glob, refuse(500, `no ${glob}`));
    await page.evaluate(`location.hash = "#/${hash}"`);
    await alertOf(page, `no ${glob}`).first().waitFor();
    await page.unroute(glob);
    await page.evaluate(`location.hash = "#/logs"`);
    await page.getByRole("heading", { name: "Logs" }).waitFor();
  }
});

test("the page of users asks again when the Controller is back", options, async () => {
  const [mixed, controller] = (await freePorts(2)) as [number, number];
  const config = `mixed-port: ${mixed}\nexternal-controller: 127.0.0.1:${controller}\n`;
  const first = await startCore(config);
  await using watched = await world.browser.open();
  const { page } = watched;
  await page.goto(`http://127.0.0.1:${controller}/ui/#/overview`);
  await page.getByText(/MiB$/).first().waitFor();
  await first.stop();
  await alertOf(page, "Controller unreachable").waitFor();
  await page.getByRole("link", { name: "Users" }).click();
  await using _again = await startCore(config);
  await page.getByText("No managed users here").waitFor();
});

test(
  "another program answers at the Controller's address: that is said, and tried again",
  options,
  async () => {
    await using watched = await world.browser.open();
    const { page } = watched;
    await page.route("**/version", refuse(404, "no such page"));
    await page.goto(`${world.full.base}/ui/`);
    await alertOf(page, "status 404: no such page").waitFor();
    await page.unroute("**/version");
    await page.route("**/version", (route) => route.fulfill({ status: 200, body: "<html>" }));
    await alertOf(page, "does not come from the Controller").waitFor();
    await page.unroute("**/version");
    await page.getByLabel("Secret").waitFor();
  },
);

test(
  "a store that came back older, and one that cannot be opened, are shown with what to do",
  options,
  async () => {
    const rollback = {
      seen_generation: 1812,
      found_generation: 1790,
      since: Math.floor(Date.now() / 1000) - 120,
    };
    /** The Controller's own answer, and this in it. */
    const withMore = (more: object) => async (route: Route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...((await response.json()) as object), ...more } });
    };
    await using watched = await world.openUsers();
    const { page } = watched;
    assert.equal(await alertOf(page, "State has gone back").count(), 0);
    const usersRollback = { ...rollback, since: rollback.since * 1000 };
    await page.route("**/api/admin/overview", withMore({ rollback: usersRollback }));
    await page.route(
      "**/traffic-control/status",
      withMore({ rollback, store_error: "in use by another process" }),
    );
    await page.evaluate(`location.hash = "#/usage"`);
    const usage = alertOf(page, "State has gone back");
    await usage.waitFor();
    assert.match(
      (await usage.textContent()) ?? "",
      /^State has gone back\. 2 min ago .*1,790.*1,812.*traffic-control\.store/,
    );
    await alertOf(
      page,
      "The store cannot be opened, and nothing is kept until it can: in use by another process",
    ).waitFor();
    await page.evaluate(`location.hash = "#/users"`);
    const users = alertOf(page, "users who were deleted may be here again");
    await users.waitFor();
    assert.match((await users.textContent()) ?? "", /weir accept-rollback with the file of svc\.store/);
  },
);

test("a notice is shown and announced in the dialog that is open", options, async () => {
  await using watched = await world.openUsers();
  const { page } = watched;
  await page.getByRole("button", { name: "seeded" }).click();
  await page.route("**/reset-traffic", refuse(503, "try again later"));
  const details = page.getByRole("dialog", { name: "seeded" });
  await details.getByRole("button", { name: "Reset counters" }).click();
  await details.getByText("seeded was not changed: try again later").waitFor();
  await details.getByRole("button", { name: "Dismiss" }).click();
  await page.getByText("try again later").waitFor({ state: "detached" });
  await details.getByRole("button", { name: "Reset counters" }).click();
  await details.getByText("try again later").waitFor();
  await page.keyboard.press("Escape");
  await details.waitFor({ state: "detached" });
  await page.locator(".notices").getByText("try again later").waitFor();
});

test("a merge that is refused stays, says why, and can be saved again", options, async () => {
  await using watched = await world.openUsers();
  const { page } = watched;
  await page.getByRole("button", { name: "seeded" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Edit" }).click();
  const answers = [refuse(409, "stale"), refuse(400, "name: not today")];
  await page.route("**/api/admin/users/*", (route) => {
    const answer = route.request().method() === "PUT" ? answers.shift() : undefined;
    return answer === undefined ? route.fallback() : answer(route);
  });
  await page.getByRole("dialog").getByLabel("Download").fill("7 Mbit/s");
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  const merge = page.getByRole("dialog", { name: "Changed meanwhile" });
  await merge.getByRole("button", { name: "Save merged" }).focus();
  await page.keyboard.press("Enter");
  await alertOf(page, "name: not today").waitFor();
  assert.equal(await page.evaluate("document.activeElement.textContent"), "Save merged");
  await merge.getByRole("button", { name: "Save merged" }).click();
  await merge.waitFor({ state: "detached" });
  const answer = await fetch(`${world.full.base}/api/admin/users`, {
    headers: { authorization: `Bearer ${FULL_ADMIN_SECRET}` },
  });
  const { users } = (await answer.json()) as { users: { name: string; download_bps?: number }[] };
  assert.equal(users.find(({ name }) => name === "seeded")?.download_bps, 7_000_000);
});

test("an answer that is late by another question is not shown", options, async () => {
  await using watched = await world.open("usage");
  const { page } = watched;
  await page.getByRole("img", { name: /^Usage of .*by hour/ }).waitFor();
  const bucket = (bytes: number) => ({
    buckets: [{ start: Math.floor(Date.now() / 1000), counters: { download_bytes: bytes, upload_bytes: 0 } }],
  });
  const held: Route[] = [];
  await page.route("**/reports?*", async (route) => {
    if (route.request().url().includes("granularity=day")) held.push(route);
    else await route.fulfill({ json: bucket(2 ** 20) });
  });
  await page.getByRole("button", { name: "Day" }).click();
  const asked = page.waitForRequest(/granularity=month/);
  await page.getByRole("button", { name: "Month" }).click();
  await asked;
  await page
    .getByRole("status")
    .filter({ hasText: /MiB down/ })
    .waitFor();
  assert.ok(held.length > 0, "the day was asked for");
  for (const route of held) await route.fulfill({ json: bucket(2 ** 30) });
  await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
  assert.equal(await page.getByText(/GiB down/).count(), 0);
});
