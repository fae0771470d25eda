/** The dashboard's first page, and one sign-in for both APIs, in a real browser against the real program. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { noBrowser, openBrowser, type Browser } from "../support/browser.ts";
import { freePorts } from "../support/free-ports.ts";
import { startCore, type Core } from "../support/start-core.ts";

const options = { skip: noBrowser };
const ADMIN_SECRET = "an admin secret of these tests, 32 bytes";
let browser: Browser;
let core: Core;
let [mixed, controller] = [0, 0];
before(async () => {
  if (noBrowser !== false) return;
  [mixed, controller] = (await freePorts(2)) as [number, number];
  browser = await openBrowser();
  core = await startCore(`
mixed-port: ${mixed}
external-controller: 127.0.0.1:${controller}
secret: open sesame
svc: { secret: "${ADMIN_SECRET}", public-base-url: "https://proxy.example.com", managed-listeners: [edge] }
listeners: [{ name: edge, type: vless, listen: 127.0.0.1, port: 0, allow-insecure: true, users: [] }]
proxies: [{ name: old, type: ssh, server: 127.0.0.1, port: 22 }]
proxy-groups: [{ name: Proxy, type: select, proxies: [DIRECT, old] }]
rules: ["GEOSITE,cn,DIRECT", "MATCH,Proxy"]
`);
});
after(async () => {
  await browser?.[Symbol.asyncDispose]();
  await core?.[Symbol.asyncDispose]();
});

test("says how to use the proxy, and what is not well, with the page that says more", options, async () => {
  await using watched = await browser.open();
  const { page } = watched;
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.goto(`http://127.0.0.1:${controller}/ui/#/overview`);
  await page.getByLabel("Secret").fill("open sesame");
  await page.keyboard.press("Enter");
  await page.getByText(`127.0.0.1:${mixed}`, { exact: true }).waitFor();
  await page.getByRole("button", { name: "Shell", exact: true }).click();
  await page.getByRole("button", { name: "Copy", exact: true }).click();
  await page.getByText("Copied").waitFor();
  const address = `http://127.0.0.1:${mixed}`;
  assert.equal(
    await page.evaluate("navigator.clipboard.readText()"),
    `export https_proxy=${address} http_proxy=${address} all_proxy=socks5h://127.0.0.1:${mixed}`,
  );
  const panel = page.getByRole("region", { name: "What is not well" });
  await panel.getByText("1 node cannot be used").waitFor();
  await panel.getByText(/^old: /).waitFor();
  await panel.getByText("1 rule can match nothing").waitFor();
  await panel.getByRole("link", { name: "Show: 1 rule can match nothing" }).click();
  await page
    .getByText(/matches nothing/)
    .first()
    .waitFor();
});

test("a token that opens both APIs is asked for once", options, async () => {
  const answer = await fetch(`http://127.0.0.1:${controller}/api/svc/tokens`, {
    method: "POST",
    headers: { authorization: `Bearer ${ADMIN_SECRET}` },
    body: JSON.stringify({ name: "operator", scopes: ["admin"] }),
  });
  const { token } = (await answer.json()) as { token: string };
  await using watched = await browser.open();
  const { page } = watched;
  await page.goto(`http://127.0.0.1:${controller}/ui/#/users`);
  await page.getByLabel("Secret").fill(token);
  await page.keyboard.press("Enter");
  await page.getByText("No users yet").waitFor();
  await page.getByRole("button", { name: "Forget the admin secret" }).click();
  await page.getByLabel("Admin secret").waitFor();
});
