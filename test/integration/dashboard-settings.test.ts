/** The built-in dashboard switches a TUN on and off. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { test } from "node:test";
import { noBrowser, openBrowser } from "../support/browser.ts";
import { freePorts } from "../support/free-ports.ts";
import { startCore } from "../support/start-core.ts";
import { until } from "../support/until.ts";

const DEVICE = "weirdash0";
const isAble = process.getuid?.() === 0 && existsSync("/dev/net/tun");
const skip = isAble ? noBrowser : "SKIP TUN: needs root and /dev/net/tun";

const isThere = (): boolean => DEVICE in networkInterfaces();

test("a TUN is switched on and off", { skip }, async () => {
  const [controller] = (await freePorts(1)) as [number];
  // It takes nothing by itself: only what is sent to its own network.
  await using core = await startCore(`
external-controller: 127.0.0.1:${controller}
dns: { enable: true, nameserver: [127.0.0.1:1] }
tun: { enable: false, device: ${DEVICE}, auto-route: false, inet4-address: [192.0.2.1/30], inet6-address: [] }
rules: ["MATCH,DIRECT"]
`);
  await using browser = await openBrowser();
  await using watched = await browser.open();
  const { page, complaints } = watched;
  await page.goto(`http://127.0.0.1:${controller}/ui/#/settings`);
  const tun = page.getByRole("switch", { name: "TUN" });
  await tun.click();
  await page.getByText("TUN changed").waitFor();
  await until("the device is there", isThere);
  await page.getByRole("switch", { name: "TUN", checked: true }).click();
  await until("the device is gone", () => !isThere());
  await page.getByRole("switch", { name: "TUN", checked: false }).waitFor();
  assert.deepEqual(complaints, []);
  assert.equal(await core.stop(), 0);
});
