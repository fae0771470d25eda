/** The wizard for listeners and nodes of the built-in dashboard, in a real browser; `operators-day.test.ts` goes on with a listener. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { noBrowser, openBrowser, type Browser } from "../support/browser.ts";
import { freePorts } from "../support/free-ports.ts";
import { noPebble, startPebble } from "../support/pebble.ts";
import { isFault, openInbounds, openSite, press, startServer } from "../support/wizard-world.ts";

const options = { skip: noBrowser };
let browser: Browser;
before(async () => {
  if (noBrowser === false) browser = await openBrowser();
});
after(() => browser?.[Symbol.asyncDispose]());

test(
  "a port is tried, sites are visited, and a trial that is taken back leaves nothing",
  options,
  async () => {
    await using stack = new AsyncDisposableStack();
    const site = stack.use(await openSite());
    const server = await startServer(stack);
    const before = readFileSync(join(server.core.home, "config.yaml"), "utf8");
    const { page, complaints } = stack.use(await browser.open());
    await openInbounds(page, server);
    await press(page, "New listener");
    await page.getByLabel("Reachable from").selectOption("127.0.0.1");
    await page.getByLabel("Port", { exact: true }).fill(server.base.split(":").at(-1) ?? "");
    await page.getByText(/Nothing can listen there: ./).waitFor();
    const [port] = (await freePorts(1)) as [number];
    await page.getByLabel("Port", { exact: true }).fill(String(port));
    await page.getByText("The port is free.").waitFor();
    await page.getByLabel("Sites to try").fill(`localhost:${site.port}\n127.0.0.1:1`);
    await press(page, "Visit and rank");
    await page.getByText("not usable").nth(1).waitFor(); // an unknown authority, and a closed port
    await page.getByLabel("Protocol").selectOption("trojan");
    await press(page, "Self-signed, for tests");
    await page.getByLabel("Server name in the certificate").fill("www.example.org");
    await page.getByLabel("Name of the first user").fill("anna");
    await press(page, "Show the change");
    await press(page, "Apply for 60 seconds");
    await page.getByText("edge is in force").waitFor();
    await page.getByRole("img", { name: "QR code of the share link" }).waitFor();
    await press(page, "Take it back");
    await page.getByText("Neither listeners nor nodes yet").waitFor();
    assert.equal(readFileSync(join(server.core.home, "config.yaml"), "utf8"), before);
    assert.deepEqual(complaints.filter(isFault), []);
  },
);

test("nodes come by link, into a group, and go again; a listener is moved and removed", options, async () => {
  await using stack = new AsyncDisposableStack();
  const server = await startServer(stack);
  const { page, complaints } = stack.use(await browser.open());
  await openInbounds(page, server);
  const file = join(server.core.home, "config.yaml");
  const before = readFileSync(file, "utf8");
  await press(page, "Add nodes by link");
  await page
    .getByLabel("Share links, one a line")
    .fill("trojan://pass@192.0.2.7:443?sni=www.example.org#Oslo 1\nnonsense");
  await page.getByRole("switch", { name: "Way" }).click();
  await press(page, "Read them");
  await page.getByText("1 line is no link").waitFor();
  await press(page, "Apply and keep");
  await page.getByText("Oslo 1", { exact: true }).waitFor();
  assert.match(readFileSync(file, "utf8"), /proxies: \[DIRECT, Oslo 1\]/);
  await press(page, "Remove Oslo 1");
  await press(page, "Apply and keep");
  await page.getByText("Oslo 1", { exact: true }).waitFor({ state: "detached" });
  const [first, second] = (await freePorts(2)) as [number, number];
  await press(page, "New listener");
  await page.getByLabel("Protocol").selectOption("mixed");
  await page.getByLabel("Name", { exact: true }).fill("door");
  await page.getByLabel("Reachable from").selectOption("127.0.0.1");
  await page.getByLabel("Port", { exact: true }).fill(String(first));
  await page.getByLabel("Name of the first user").fill("ben");
  await press(page, "Show the change");
  await press(page, "Apply and keep");
  await page.getByText("door is in force").waitFor();
  await press(page, "Done");
  await press(page, "Edit door");
  await page.getByLabel("Port", { exact: true }).fill(String(second));
  await press(page, "Show the change");
  await press(page, "Apply and keep");
  await page.getByText(`127.0.0.1:${second}`).waitFor();
  await press(page, "Remove door");
  await press(page, "Apply and keep");
  await page.getByText(`127.0.0.1:${second}`).waitFor({ state: "detached" });
  const now = readFileSync(file, "utf8");
  assert.ok(now.startsWith(before), "what was there has its bytes again");
  assert.deepEqual(complaints.filter(isFault), []);
});

/** The form for a TLS listener on loopback whose certificate comes by ACME. */
async function fillAcme(page: Page, port: number): Promise<void> {
  await press(page, "New listener");
  await page.getByLabel("Protocol").selectOption("trojan");
  await page.getByLabel("Reachable from").selectOption("127.0.0.1");
  await page.getByLabel("Port", { exact: true }).fill(String(port));
  await page.getByLabel("Name of the first user").fill("anna");
  await press(page, "By ACME (Let's Encrypt)");
  await page.getByLabel("Server name in the certificate").fill("edge.example");
}

test("the first certificate by ACME wants agreement to the terms, and makes the block", options, async () => {
  await using stack = new AsyncDisposableStack();
  const server = await startServer(stack);
  const { page, complaints } = stack.use(await browser.open());
  await openInbounds(page, server);
  const [port] = (await freePorts(1)) as [number];
  await fillAcme(page, port);
  await press(page, "Show the change");
  await page
    .getByText(/agree-tos.*must be true/)
    .first()
    .waitFor();
  await press(page, "Back");
  await page.getByRole("switch", { name: "I agree to the terms of service of Let's Encrypt" }).click();
  await page.getByLabel("How the name is validated").selectOption("tls-alpn-01");
  await press(page, "Show the change");
  await page.getByText("agree-tos: true").first().waitFor();
  assert.deepEqual(complaints.filter(isFault), []);
});

test(
  "with the block in the file only the name is asked for, and the certificate comes",
  {
    skip: noBrowser || noPebble,
  },
  async () => {
    await using stack = new AsyncDisposableStack();
    const pebble = stack.use(await startPebble());
    const server = await startServer(stack);
    writeFileSync(join(server.core.home, "directory.pem"), pebble.ca);
    const file = readFileSync(join(server.core.home, "config.yaml"), "utf8");
    await server.core.reload(
      `${file}acme: { agree-tos: true, directory: "${pebble.directory}", ca: directory.pem, challenge: tls-alpn-01 }\n`,
    );
    const { page, complaints } = stack.use(await browser.open());
    await openInbounds(page, server);
    await fillAcme(page, pebble.tlsPort);
    assert.equal(await page.getByRole("switch").count(), 0);
    await press(page, "Show the change");
    await press(page, "Apply and keep");
    await page.getByText("edge is in force").waitFor();
    await server.core.shows(/acme: certificate for edge\.example: valid until/);
    assert.deepEqual(complaints.filter(isFault), []);
  },
);
