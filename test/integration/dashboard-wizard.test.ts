/** The wizard for listeners and nodes of the built-in dashboard, in a real browser, with real clients of what it makes. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createSecureServer } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import type { Page } from "playwright-core";
import { noBrowser, openBrowser, type Browser } from "../support/browser.ts";
import { makeCertificate } from "../support/certificate.ts";
import { freePorts } from "../support/free-ports.ts";
import { readQr } from "../support/read-qr.ts";
import { startCore, type Core } from "../support/start-core.ts";
import { until } from "../support/until.ts";
import { openWebOrigin } from "../support/web-origin.ts";

const weir = join(import.meta.dirname, "..", "..", "bin", "weir");
const SECRET = "the secret of the Controller of this test";
const options = { skip: noBrowser };
let browser: Browser;
before(async () => {
  if (noBrowser === false) browser = await openBrowser();
});
after(() => browser?.[Symbol.asyncDispose]());

const press = (page: Page, name: string) => page.getByRole("button", { name, exact: true }).click();

/** That a secret is wanted is found out by asking. */
const isFault = (text: string): boolean => !text.includes("401 (Unauthorized)");

/** A site that REALITY can hide behind. */
async function openSite() {
  const { cert, key } = makeCertificate({ names: ["localhost"] });
  const server = createSecureServer({ key, cert, allowHTTP1: true }, (_, response) =>
    response.end("the site"),
  );
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => sockets.add(socket.on("error", () => {})));
  server.on("sessionError", () => {}).on("tlsClientError", () => {});
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

interface Server {
  readonly base: string;
  readonly core: Core;
}

async function startServer(stack: AsyncDisposableStack): Promise<Server> {
  const [controller] = (await freePorts(1)) as [number];
  const core = stack.use(
    await startCore(`# kept as it is
external-controller: 127.0.0.1:${controller}
secret: ${SECRET}
proxy-groups:
  - { name: Way, type: select, proxies: [DIRECT] } # and this
rules:
  - IP-CIDR,127.0.0.0/8,DIRECT
  - MATCH,DIRECT
`),
  );
  return { base: `http://127.0.0.1:${controller}`, core };
}

async function openPage(page: Page, { base }: Server): Promise<void> {
  await page.goto(`${base}/ui/#/inbounds`);
  await page.getByLabel("Secret").fill(SECRET);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Listeners and nodes", level: 1 }).waitFor();
}

/** What a client of our own gets through the link. */
async function throughLink(link: string, url: string): Promise<string> {
  const { stdout } = await promisify(execFile)(weir, ["link", link]);
  const name = /name: (.*)/.exec(stdout)?.[1] ?? "";
  const [mixed] = (await freePorts(1)) as [number];
  await using client = await startCore(
    `mixed-port: ${mixed}\n${stdout}rules: ['MATCH,${name.replaceAll('"', "")}']\n`,
  );
  void client;
  const answer = await promisify(execFile)("curl", [
    "-sS",
    "-m",
    "20",
    "-x",
    `socks5h://127.0.0.1:${mixed}`,
    url,
  ]);
  return answer.stdout;
}

test(
  "a REALITY server without the file: keys, trial, first user, and a client by its QR code",
  options,
  async () => {
    await using stack = new AsyncDisposableStack();
    const site = stack.use(await openSite());
    const origin = stack.use(await openWebOrigin((_, response) => response.end("seen through it")));
    const server = await startServer(stack);
    const [port] = (await freePorts(1)) as [number];
    const { page, complaints } = stack.use(await browser.open());
    await openPage(page, server);
    await press(page, "New listener");
    await page.getByLabel("Name", { exact: true }).fill("front");
    await page.getByLabel("Reachable from").selectOption("127.0.0.1");
    await page.getByLabel("Port", { exact: true }).fill(server.base.split(":").at(-1) ?? "");
    await page.getByText(/Nothing can listen there/).waitFor();
    await page.getByLabel("Port", { exact: true }).fill(String(port));
    await page.getByText("The port is free.").waitFor();
    await page.getByLabel("Sites to try").fill(`127.0.0.1:${site.port}`);
    await press(page, "Visit and rank");
    await page
      .getByText(/not usable|usable/)
      .first()
      .waitFor();
    await page.getByLabel("REALITY target (dest)").fill(`127.0.0.1:${site.port}`);
    await page.getByLabel("Server name of the target").fill("localhost");
    await page.getByLabel("Public address of this server").fill("https://127.0.0.1");
    await press(page, "Show the change");
    await page.getByText("No errors and no warnings").waitFor();
    await press(page, "Apply for 60 seconds");
    await page.getByText("front is in force").waitFor();
    const file = join(server.core.home, "config.yaml");
    assert.ok(!readFileSync(file, "utf8").includes("front"), "a trial is not written");
    await press(page, "Keep it");
    await until("the file has it", () => readFileSync(file, "utf8").includes("name: front"));
    assert.match(readFileSync(file, "utf8"), /^# kept as it is\n[^]*\[DIRECT\] \} # and this\n/);
    await page.getByLabel("Name of the first user").fill("anna");
    await press(page, "Add user");
    await page.getByText("User anna was added").waitFor();
    const link = await readQr(page, page.getByRole("img", { name: "QR code of the share link" }));
    assert.match(link, new RegExp(`^vless://.*@127\\.0\\.0\\.1:${port}\\?.*reality`));
    assert.equal(await throughLink(link, origin.url), "seen through it");
    assert.deepEqual(complaints.filter(isFault), []);
  },
);

test("nodes come by link, into a group, and go again; a listener is moved and removed", options, async () => {
  await using stack = new AsyncDisposableStack();
  const server = await startServer(stack);
  const { page, complaints } = stack.use(await browser.open());
  await openPage(page, server);
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
