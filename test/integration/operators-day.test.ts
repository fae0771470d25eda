/** A day of an operator in a real browser, without the configuration file: a server, its users, and all of it elsewhere. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { noBrowser, openBrowser } from "../support/browser.ts";
import { freePorts } from "../support/free-ports.ts";
import { readQr } from "../support/read-qr.ts";
import { startCore } from "../support/start-core.ts";
import { until } from "../support/until.ts";
import { openWebOrigin } from "../support/web-origin.ts";
import * as world from "../support/wizard-world.ts";

const { press } = world;

test(
  "REALITY by the wizard, ten users by template, QR code and client, one disabled, backup, restored elsewhere",
  { skip: noBrowser },
  async () => {
    await using stack = new AsyncDisposableStack();
    const browser = stack.use(await openBrowser());
    const site = stack.use(await world.openSite());
    const origin = stack.use(await openWebOrigin(answer));
    const server = await world.startServer(stack);
    const [port] = (await freePorts(1)) as [number];
    const { page, complaints } = stack.use(await browser.open());
    await world.openInbounds(page, server);

    await press(page, "New listener");
    await world.fillReality(page, "front", port, site);
    await press(page, "Apply for 60 seconds");
    await page.getByText("front is in force").waitFor();
    const file = join(server.core.home, "config.yaml");
    assert.ok(!readFileSync(file, "utf8").includes("front"), "a trial is not written");
    await press(page, "Keep it");
    await until("the file has it", () => readFileSync(file, "utf8").includes("name: front"));
    assert.match(readFileSync(file, "utf8"), /^# kept as it is\n[^]*\[DIRECT\] } # and this\n/);
    await page.getByLabel("Name of the first user").fill("anna");
    await press(page, "Add user");
    const link = await linkShown(page);
    assert.match(link, new RegExp(`^vless://[^@]+@127\\.0\\.0\\.1:${port}\\?.*reality`));
    await press(page, "Done");

    await goTo(page, "users", "Users");
    await press(page, "Several by template");
    await page.getByLabel(/^Names/).fill("desk-{n}");
    await page.getByLabel("Quota", { exact: true }).fill("5 GiB");
    await press(page, "Create");
    await page.getByText("10 of 10 changes").waitFor();
    await press(page, "Done");
    await page.getByText("11 users").waitFor();
    assert.equal(await page.getByText(/of 5.00 GiB/).count(), 10);
    await press(page, "Name"); // the head of its column
    await press(page, "Name");
    assert.match((await page.getByRole("row").nth(1).textContent()) ?? "", /^desk-10/);

    await press(page, "desk-07");
    await press(page, "Share link");
    const desk = await linkShown(page);
    await page.keyboard.press("Escape");
    await using anna = await world.startClient(link);
    await using seventh = await world.startClient(desk);
    assert.equal(await anna.get(origin.url), "seen through it");
    assert.equal(await seventh.get(origin.url), "seen through it");

    const held = assert.rejects(
      seventh.get(`${origin.url}/endless`),
      ({ code }: { code?: number }) => code !== TIMED_OUT,
    );
    await page.locator(".c-age").getByText("1", { exact: true }).waitFor(); // a live connection
    await page.getByLabel("Choose desk-07").check();
    await press(page, "Disable: all that are chosen");
    await page.getByText("1 of 1 change").waitFor();
    await press(page, "Done");
    await held; // cut, not timed out
    await assert.rejects(seventh.get(origin.url));
    assert.equal(await anna.get(origin.url), "seen through it");

    await goTo(page, "settings", "Settings");
    const saved = page.waitForEvent("download");
    await press(page, "Download a backup");
    const backup = await (await saved).path();
    assert.deepEqual(complaints.filter(world.isFault), []);
    await server.core.stop();
    const restore = (home: string) => world.restoreInto(home, backup);
    await using second = await startCore("rules: ['MATCH,DIRECT']\n", { seed: restore });
    await second.port("front");
    assert.equal(await anna.get(origin.url), "seen through it");
    await assert.rejects(seventh.get(origin.url), "disabled there, too");
  },
);

/** Exit code of curl. */
const TIMED_OUT = 28;

const answer: Parameters<typeof openWebOrigin>[0] = (request, response) => {
  if (request.url !== "/endless") {
    response.end("seen through it");
    return;
  }
  const timer = setInterval(() => response.write("more\n"), 50);
  void once(response, "close").then(() => clearInterval(timer));
};

async function goTo(page: Page, path: string, title: string): Promise<void> {
  await page.evaluate(`location.hash = "#/${path}"`);
  await page.getByRole("heading", { name: title, level: 1, exact: true }).waitFor();
}

const linkShown = (page: Page): Promise<string> =>
  readQr(page, page.getByRole("img", { name: "QR code of the share link" }));
