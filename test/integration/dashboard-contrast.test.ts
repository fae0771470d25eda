/** Every control of the built-in dashboard can be read in every state, in both themes. */
import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { noBrowser, type WatchedPage } from "../support/browser.ts";
import { contrasts, STATES, type Contrast } from "../support/contrast.ts";
import { FULL_ADMIN_SECRET } from "../support/full-core.ts";
import { openTunnel } from "../support/tunnels.ts";
import { openFullDashboard, type FullDashboard } from "../support/full-dashboard.ts";

const LEAST = 4.5;
const options = { skip: noBrowser };

let world: FullDashboard;
before(async () => {
  if (noBrowser === false) world = await openFullDashboard((socket) => void socket.resume());
});
after(() => world?.[Symbol.asyncDispose]());

/** What shows that a page is there, and what else is opened on it. */
const PAGES: readonly (readonly [path: string, shown: string, then?: (page: Page) => Promise<unknown>])[] = [
  ["overview", "Throughput"],
  ["connections", "No connections"],
  ["groups", "Proxy"],
  ["rules", "RuleSet"],
  ["usage", "Phone", (page) => page.getByRole("button", { name: "Add a policy" }).click()],
  ["logs", "Level"],
  ["dns", "Ask the resolver"],
  ["explain", "Ask where a connection would go"],
  ["editor", "No errors and no warnings", reviewChange],
  ["settings", "Running settings"],
];

/** Where a session of administrators is needed: the page, and the buttons that open a dialog on it. */
const BEHIND_THE_ADMIN_SECRET: readonly (readonly [path: string, title: string, ...dialogs: string[]])[] = [
  ["inbounds", "Listeners and nodes", "New listener", "Add nodes by link"],
  ["tokens", "Tokens", "New token"],
  ["audit", "Audit"],
  ["nodes", "Nodes"],
];

/** An error among the lines, then a good change whose difference is shown. */
async function reviewChange(page: Page): Promise<void> {
  const text = page.getByRole("textbox", { name: "Text of the configuration file" });
  const before = await text.inputValue();
  await text.fill(`${before}\nmode: sideways\n`);
  await page.getByRole("button", { name: /mode/ }).first().waitFor();
  assert.equal(shown(await unreadable(page)), "", "an error in the text");
  await text.fill(`${before}\n# more\n`);
  await page.getByText("No errors and no warnings").waitFor();
  await page.getByRole("button", { name: "Review and apply" }).click();
  await page.getByRole("region", { name: "Changes to the file" }).waitFor();
}

async function unreadable(page: Page): Promise<readonly Contrast[]> {
  const all: Contrast[] = [];
  for (const state of STATES) all.push(...(await contrasts(page, state)));
  assert.ok(all.length > STATES.length, "no control was measured");
  return all.filter(({ ratio }) => ratio < LEAST);
}

const shown = (faults: readonly Contrast[]): string =>
  [
    ...new Set(
      faults.map(({ control, state, text, ratio }) => `${ratio.toFixed(2)} ${state}: ${control} ${text}`),
    ),
  ].join("\n");

/** What another administrator does: the user's limit of upload becomes another one. */
async function changeMeanwhile(name: string): Promise<void> {
  const authorization = `Bearer ${FULL_ADMIN_SECRET}`;
  const path = `${world.full.base}/api/admin/users`;
  const list = await fetch(path, { headers: { authorization } });
  const { users } = (await list.json()) as {
    users: readonly { id: string; name: string; revision: number }[];
  };
  const user = users.find((one) => one.name === name);
  assert.ok(user !== undefined, name);
  const { id, revision } = user;
  const body = JSON.stringify({ revision, upload_bps: randomInt(1_000_000, 1_000_000_000) });
  const answer = await fetch(`${path}/${id}`, { method: "PUT", headers: { authorization }, body });
  assert.equal(answer.status, 200, await answer.text());
}

for (const colorScheme of ["light", "dark"] as const) {
  test(`${colorScheme}: every control of every page`, options, async () => {
    await using watched: WatchedPage = await world.open("overview", { colorScheme });
    const { page } = watched;
    await page.getByText("Throughput").first().waitFor();
    for (const [path, text, then] of PAGES) {
      await page.goto(`${world.full.base}/ui/#/${path}`);
      await page.getByText(text).first().waitFor();
      await then?.(page);
      assert.equal(shown(await unreadable(page)), "", `${path}, ${colorScheme}`);
      await page.keyboard.press("Escape");
    }
  });

  test(`${colorScheme}: a connection that lives, and its details`, options, async () => {
    const to = { host: "contrast.good.test", port: world.origin.port };
    const live = await openTunnel("connect", world.full.mixed, "127.0.0.1", to);
    using _ = { [Symbol.dispose]: () => live.resetAndDestroy() };
    await using watched = await world.open("connections", { colorScheme });
    const { page } = watched;
    const row = page.getByRole("button", { name: `contrast.good.test:${world.origin.port}`, exact: true });
    await row.waitFor();
    assert.equal(shown(await unreadable(page)), "", "the list");
    await row.click();
    await page.getByRole("dialog").waitFor();
    assert.equal(shown(await unreadable(page)), "", "its details");
  });

  test(
    `${colorScheme}: listeners, tokens, audit and nodes, and what is opened on them`,
    options,
    async () => {
      await using watched = await world.openUsers({ colorScheme });
      const { page } = watched;
      for (const [path, title, ...dialogs] of BEHIND_THE_ADMIN_SECRET) {
        await page.goto(`${world.full.base}/ui/#/${path}`);
        await page.getByRole("heading", { name: title, level: 1, exact: true }).waitFor();
        assert.equal(shown(await unreadable(page)), "", path);
        for (const name of dialogs) {
          await page.getByRole("button", { name, exact: true }).first().click();
          await page.getByRole("dialog").waitFor();
          assert.equal(shown(await unreadable(page)), "", `${path}: ${name}`);
          await page.keyboard.press("Escape");
          await page.getByRole("dialog").waitFor({ state: "detached" });
        }
      }
    },
  );

  test(
    `${colorScheme}: managed users, their dialogs, and the page that asks for the secret`,
    options,
    async () => {
      await using watched = await world.openUsers({ colorScheme });
      const { page } = watched;
      assert.equal(shown(await unreadable(page)), "", "users");
      await page.getByRole("button", { name: "New user" }).click();
      await page.getByRole("dialog", { name: "New user" }).waitFor();
      assert.equal(shown(await unreadable(page)), "", "a new user");
      await page.keyboard.press("Escape");
      await page.getByRole("button", { name: "seeded" }).click();
      await page.getByRole("button", { name: "QR code" }).waitFor();
      assert.equal(shown(await unreadable(page)), "", "a user");
      await page.getByRole("button", { name: "Edit" }).click();
      const edit = page.getByRole("dialog", { name: "Edit seeded" });
      await edit.waitFor();
      assert.equal(shown(await unreadable(page)), "", "changing a user");
      await changeMeanwhile("seeded");
      await edit.getByLabel("Download").fill("5 Mbit/s");
      await edit.getByRole("button", { name: "Save" }).click();
      await page.getByRole("dialog", { name: "Changed meanwhile" }).waitFor();
      assert.equal(shown(await unreadable(page)), "", "two changes of one user");
      await page.keyboard.press("Escape");
      await page.keyboard.press("Escape");
      await page.getByRole("button", { name: "seeded" }).click();
      await page.getByRole("button", { name: "Delete" }).click();
      assert.equal(shown(await unreadable(page)), "", "a question");
      await page.keyboard.press("Escape");
      await using locked = await world.browser.open({ colorScheme });
      await locked.page.goto(`${world.full.base}/ui/`);
      await locked.page.getByLabel("Secret").waitFor();
      assert.equal(shown(await unreadable(locked.page)), "", "the gate");
    },
  );
}
