/** The built-in dashboard changes what can be changed while the program runs, and looks for newer versions of it. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { noBrowser, openBrowser } from "../support/browser.ts";
import { freePorts } from "../support/free-ports.ts";
import { archiveOf, ReleaseFolder } from "../support/release.ts";
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

test(
  "settings change while running, are read back, refused with the reason, and kept in the file",
  { skip: noBrowser },
  async () => {
    const [controller, mixed, socks] = (await freePorts(3)) as [number, number, number];
    await using core = await startCore(`
external-controller: 127.0.0.1:${controller}
mixed-port: ${mixed} # of the browser
rules: ["MATCH,DIRECT"]
`);
    const base = `http://127.0.0.1:${controller}`;
    const running = async (key: string): Promise<unknown> =>
      ((await (await fetch(`${base}/configs`)).json()) as Record<string, unknown>)[key];
    await using browser = await openBrowser();
    await using watched = await browser.open();
    const { page, complaints } = watched;
    await page.goto(`${base}/ui/#/settings`);
    const set = async (label: string | RegExp, text: string): Promise<void> => {
      await page.getByLabel(label).fill(text);
      await page.getByLabel(label).press("Enter");
    };
    await page.getByLabel("Find the process").selectOption("always");
    await page.getByText("Find the process of a connection changed").waitFor();
    assert.equal(await running("find-process-mode"), "always");
    await page.getByRole("switch", { name: "TCP concurrent" }).click();
    await page.getByRole("switch", { name: "TCP concurrent", checked: true }).waitFor();
    await set(/^Port of socks/, String(socks));
    await page.getByText("socks-port changed").waitFor();
    assert.equal(await running("socks-port"), socks);
    await set(/^Interface name/, "lo");
    const notice = page.getByText(/^Interface name.*changed/);
    assert.match(await notice.innerText(), /\) changed/);
    assert.equal(await running("interface-name"), "lo");
    await set(/^Interface name/, "");
    await until("it is the system's again", async () => (await running("interface-name")) === "");

    await page.getByRole("switch", { name: "Sniffing" }).click();
    await page.getByText(/the file has no sniffer block with enable: true/).waitFor();
    await set(/^Port of http /, String(controller));
    await page
      .getByText(/port was not changed: .*another program listens there/)
      .first()
      .waitFor();
    await set(/^Port of redir/, "70000");
    await page.getByText("a port is a number from 0 to 65535").waitFor();

    const before = readFileSync(join(core.home, "config.yaml"), "utf8");
    assert.ok(!before.includes("find-process-mode"), "the file is as it was");
    await page.getByRole("button", { name: "Keep in the file …" }).click();
    await page.getByRole("button", { name: "Apply and keep" }).click();
    await until("the file has them", () => readFileSync(join(core.home, "config.yaml"), "utf8") !== before);
    const text = readFileSync(join(core.home, "config.yaml"), "utf8");
    assert.match(text, /mixed-port: \d+ # of the browser/);
    for (const line of ["find-process-mode: always", "tcp-concurrent: true", `socks-port: ${socks}`])
      assert.ok(text.includes(line), text);
    assert.doesNotMatch(text, /sniffer|redir-port/);
    await page.getByRole("button", { name: "Keep in the file …" }).waitFor({ state: "hidden" });
    assert.equal(await running("socks-port"), socks);
    assert.deepEqual(complaints.filter((line) => !line.includes("Failed to load")), []); // prettier-ignore
  },
);

test(
  "the settings say which version runs, and what the release folder has",
  { skip: noBrowser },
  async () => {
    await using release = await ReleaseFolder.open();
    const [controller] = (await freePorts(1)) as [number];
    const key = JSON.stringify(release.publicKey);
    const without = `external-controller: 127.0.0.1:${controller}\nsecret: ""\n`;
    const text = `${without}update: { url: "${release.url}", public-key: ${key}, by-controller: true }\n`;
    await using core = await startCore(without);
    await using browser = await openBrowser();
    await using watched = await browser.open();
    const { page } = watched;
    await page.goto(`http://127.0.0.1:${controller}/ui/#/settings`);
    await page.getByText("Where newer versions come from is not configured").waitFor();
    await core.reload(text);
    await page.reload();
    const check = page.getByRole("button", { name: "Check for a newer version" });
    await check.click();
    await page.getByText(/update error: 127\.0\.0\.1:\d+ answered with HTTP status 404/).waitFor();
    release.publish("9.9.9", archiveOf("9.9.9"));
    await check.click();
    // A checkout calls itself dev.
    await page.getByText("The release folder has 9.9.9, which cannot be told to be newer.").waitFor();
    assert.equal(await page.getByRole("button", { name: "Update to" }).count(), 0);
    assert.equal(await core.stop(), 0);
  },
);
