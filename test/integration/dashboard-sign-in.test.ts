/** Signing in at the built-in dashboard: by a secret, by the link of the start, and over a reload of the page. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { codeOf, stepAt } from "#journal/totp.ts";
import { encodeBase32 } from "#lib/base32.ts";
import { en } from "#ui/words/en/index.ts";
import { noBrowser, openBrowser, type Browser } from "../support/browser.ts";
import { freePorts } from "../support/free-ports.ts";
import { stateFolder } from "../support/managed-core.ts";
import { startCore, type Core } from "../support/start-core.ts";

const SECRET = "a secret that only this test knows";
const ADMIN_SECRET = "another secret that only this test knows";
const options = { skip: noBrowser };
let browser: Browser;
let core: Core;
let base: string;
before(async () => {
  if (noBrowser !== false) return;
  const [controller] = (await freePorts(1)) as [number];
  base = `http://127.0.0.1:${controller}`;
  browser = await openBrowser();
  const text = `external-controller: 127.0.0.1:${controller}
secret: ${SECRET}
svc: { secret: "${ADMIN_SECRET}", public-base-url: "https://proxy.example.com", managed-listeners: [edge] }
listeners:
  - { name: edge, type: vless, listen: 127.0.0.1, port: 0, allow-insecure: true, users: [] }
`;
  core = await startCore(text, { args: ["-sign-in-link"] });
});
after(async () => {
  await browser?.[Symbol.asyncDispose]();
  await core?.[Symbol.asyncDispose]();
});

const isThere = (page: Page, title: string) =>
  page.getByRole("heading", { name: title, level: 1, exact: true }).waitFor();

/** For the page: done as soon as such an element is drawn, before it is painted. */
const asDrawn = (selector: string, action: string): string =>
  `new MutationObserver((_, observer) => {
    if (document.querySelector("${selector}") === null) return;
    observer.disconnect();
    ${action};
  }).observe(document, { childList: true, subtree: true })`;

async function give(page: Page, label: string, secret: string): Promise<void> {
  await page.getByLabel(label, { exact: true }).fill(secret);
  await page.keyboard.press("Enter");
}

test(
  "a reload asks for neither secret again; no address and no storage has one; signing out ends it",
  options,
  async () => {
    await using watched = await browser.open();
    const { page } = watched;
    const addresses: string[] = [];
    page.on("request", (request) => addresses.push(request.url()));
    page.on("websocket", (socket) => addresses.push(socket.url()));
    await page.goto(`${base}/ui/#/users`);
    const field = page.getByLabel("Secret", { exact: true });
    assert.equal(await field.getAttribute("autocomplete"), "current-password");
    await give(page, "Secret", "wrong");
    await page.getByText("That is not the secret.").waitFor();
    await give(page, "Secret", SECRET);
    await give(page, "Admin secret", ADMIN_SECRET);
    await page.getByRole("button", { name: "New user" }).waitFor();
    await page.reload();
    await page.getByRole("button", { name: "New user" }).waitFor();
    await page.evaluate("location.hash = '#/overview'");
    await isThere(page, "Overview");
    await page.reload();
    await isThere(page, "Overview");
    const kept = String(await page.evaluate("JSON.stringify([{ ...sessionStorage }, { ...localStorage }])"));
    for (const secret of [SECRET, ADMIN_SECRET]) {
      assert.ok(!kept.includes(secret));
      assert.deepEqual(
        addresses.map(decodeURIComponent).filter((url) => url.replaceAll("+", " ").includes(secret)),
        [],
      );
    }
    const sessions = JSON.parse(kept) as readonly Record<string, string>[];
    const session = sessions[0]?.["weir.session"] ?? "";
    const ask = () => fetch(`${base}/version`, { headers: { authorization: `Bearer ${session}` } });
    assert.equal((await ask()).status, 200);
    const out = await fetch(`${base}/api/svc/session`, {
      method: "DELETE",
      headers: { authorization: `Bearer ${session}` },
    });
    assert.equal(out.status, 204);
    assert.equal((await ask()).status, 401);
    await page.reload();
    await field.waitFor();
    assert.equal(
      await page.getByText("That is not the secret.").count(),
      0,
      "a session that is over is no wrong secret",
    );
  },
);

test("the link of the start opens both APIs, once, and is gone from the address", options, async () => {
  const [, link = ""] = await core.shows(/sign in within ten minutes, once: (http\S+?)"?\s/);
  assert.ok(!link.includes(SECRET));
  {
    await using watched = await browser.open();
    const { page } = watched;
    await page.goto(`${base}/ui/`);
    await page.getByLabel("Secret", { exact: true }).waitFor();
    await page.goto(link); // in the tab that is open already only what is behind # changes
    await isThere(page, "Overview");
    assert.ok(!page.url().includes("sign-in"));
    await page.evaluate("location.hash = '#/users'");
    await page.getByRole("button", { name: "New user" }).waitFor();
  }
  await using again = await browser.open();
  await again.page.goto(link);
  await again.page.getByLabel("Secret", { exact: true }).waitFor();
  await again.page.getByText("This link was used before or has expired.").waitFor();
});

test("what is typed or opened as soon as it can be seen is not lost", options, async () => {
  await using watched = await browser.open();
  const { page } = watched;
  await page.addInitScript(asDrawn("input[name=password]", "window.focused = document.activeElement.name"));
  await page.addInitScript(asDrawn("#content h1", "location.hash = '#/rules'"));
  await page.goto(`${base}/ui/#/overview`);
  await page.getByLabel("Secret", { exact: true }).waitFor();
  assert.equal(await page.evaluate("window.focused"), "password");
  await give(page, "Secret", SECRET);
  await isThere(page, "Rules");
  assert.equal(await page.evaluate("document.activeElement.textContent"), "Rules");
});

test(
  "with svc.totp-file the form asks for a code, says that one is wrong, and one is enough for both secrets",
  options,
  async () => {
    using state = stateFolder();
    const [controller = 0] = await freePorts(1);
    const key = randomBytes(20);
    const file = join(state.path, "totp.txt");
    writeFileSync(file, encodeBase32(key), { mode: 0o600 });
    const text = `external-controller: 127.0.0.1:${controller}
secret: ${SECRET}
svc: { secret: "${ADMIN_SECRET}", store: ${state.store}, managed-listeners: [edge], totp-file: ${file} }
listeners:
  - { name: edge, type: vless, listen: 127.0.0.1, port: 0, allow-insecure: true, users: [] }
`;
    await using _ = await startCore(text, { env: { SAFE_PATHS: state.path } });
    await using watched = await browser.open();
    const { page } = watched;
    await page.goto(`http://127.0.0.1:${controller}/ui/#/users`);
    await give(page, "Secret", "wrong");
    await page.getByText("That is not the secret.").waitFor();
    assert.equal(await page.getByLabel(en["gate.code"]).count(), 0, "not asked for without the secret");
    await page.evaluate(asDrawn("input[name=code]", "window.focused = document.activeElement.name"));
    await give(page, "Secret", SECRET);
    const code = page.getByLabel(en["gate.code"]);
    await code.waitFor();
    assert.equal(await page.evaluate("window.focused"), "code");
    assert.equal(await code.getAttribute("autocomplete"), "one-time-code");
    assert.equal(await page.evaluate("document.activeElement.name"), "code");
    await give(page, en["gate.code"], "000000");
    await page.getByText(en["gate.codeWrong"]).waitFor();
    await give(page, en["gate.code"], codeOf(key, stepAt(Date.now())));
    await give(page, "Admin secret", ADMIN_SECRET);
    await page.getByRole("button", { name: "New user" }).waitFor();
    await page.reload();
    await page.getByRole("button", { name: "New user" }).waitFor();
  },
);
