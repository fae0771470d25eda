/** Takes the pictures of docs/dashboard.md anew: `node scripts/screenshots.ts`. Needs Chromium; not part of the tests. */
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { noBrowser, openBrowser, type PageOptions } from "../test/support/browser.ts";
import { freePorts } from "../test/support/free-ports.ts";
import { openTcpOrigin } from "../test/support/origin.ts";
import { startCore } from "../test/support/start-core.ts";

const FOLDER = join(dirname(dirname(fileURLToPath(import.meta.url))), "docs", "img");
const HOSTS = [
  "www.example.org",
  "media.example.net",
  "mail.example.com",
  "api.example.org",
  "updates.example.net",
];
const ADMIN_SECRET = "a secret that these pictures need, no more";
/** Long enough for a curve that shows something. */
const WARM_UP_MS = 45_000;

if (noBrowser !== false) throw new Error(noBrowser);
const [mixed, controller] = (await freePorts(2)) as [number, number];
await using _core = await startCore(`
mixed-port: ${mixed}
external-controller: 127.0.0.1:${controller}
svc: { secret: "${ADMIN_SECRET}", public-base-url: "https://proxy.example.com", managed-listeners: [edge] }
listeners:
  - { name: edge, type: vless, listen: 127.0.0.1, port: 0, allow-insecure: true, users: [] }
traffic-control:
  enabled: true
  global: { name: The house, quota: { total-bytes: 2000000000, window: 30d } }
  devices:
    - { id: this-machine, name: This machine, source-cidrs: [127.0.0.0/8] }
    - { id: tablet, name: Tablet, source-cidrs: [192.168.1.20/32], download-bps: 20000000 }
  rules:
    - { id: media, name: Media, type: DOMAIN-SUFFIX, payload: media.example.net, target: Media }
  targets:
    - { kind: group, target: Proxy }
    - { kind: proxy, target: Oslo }
hosts: { "+.example.org": 127.0.0.1, "+.example.net": 127.0.0.1, "+.example.com": 127.0.0.1 }
proxies:
  - { name: Frankfurt 1, type: direct }
  - { name: Frankfurt 2, type: direct }
  - { name: Oslo, type: direct }
  - { name: Singapore, type: socks5, server: 127.0.0.1, port: 1 }
proxy-groups:
  - { name: Proxy, type: select, proxies: [Auto, Frankfurt 1, Frankfurt 2, Oslo, Singapore, DIRECT] }
  - { name: Auto, type: url-test, interval: 0, proxies: [Frankfurt 1, Frankfurt 2, Oslo], url: 'http://127.0.0.1:${controller}/version' }
  - { name: Media, type: fallback, interval: 0, proxies: [Oslo, Frankfurt 1], url: 'http://127.0.0.1:${controller}/version' }
rules:
  - DOMAIN-KEYWORD,advert,REJECT
  - DOMAIN-SUFFIX,media.example.net,Media
  - DOMAIN-SUFFIX,example.org,Proxy
  - AND,((NETWORK,udp),(DST-PORT,443)),REJECT
  - IP-CIDR,10.0.0.0/8,DIRECT,no-resolve
  - MATCH,Proxy
`);
const base = `http://127.0.0.1:${controller}`;
await using origin = await openTcpOrigin(
  (socket) => void socket.on("data", () => socket.write(Buffer.alloc(48_000))),
);
for (const host of [...HOSTS, ...HOSTS.slice(0, 3)]) await openTransfer(host);
for (const group of ["Proxy", "Media"])
  await fetch(`${base}/group/${group}/delay?timeout=1000&url=${base}/version`);
await makeUsers();

await using browser = await openBrowser();
mkdirSync(FOLDER, { recursive: true });
await take("overview", "overview", {}, WARM_UP_MS);
await take("connections-dark", "connections", { colorScheme: "dark" });
await take("groups", "groups");
await take("explain", "explain?destination=media.example.net&port=443");
await take("usage", "usage", { height: 1000 });
await take("users", "users", {}, 1_000, showUsers);
await take("user", "users", { height: 900, colorScheme: "dark" }, 1_000, async (page) => {
  await showUsers(page);
  await page.getByRole("button", { name: "anna" }).click();
  await page.getByRole("button", { name: "QR code" }).click();
  await delay(1_000);
});
await take("phone", "connections", { width: 360, height: 640 });
process.exit(0); // the transfers would go on

async function openTransfer(host: string): Promise<Socket> {
  const socket = connect(mixed, "127.0.0.1");
  socket.on("error", () => {});
  socket.write(`CONNECT ${host}:${origin.port} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  await once(socket, "data");
  let turn = 0;
  setInterval(
    () => socket.write("x".repeat(2_000 + 1_500 * Math.sin(turn++ / 9))),
    150 + Math.random() * 600,
  );
  return socket;
}

async function makeUsers(): Promise<void> {
  const gib = 2 ** 30;
  const drafts = [
    {
      name: "anna",
      quota: { total_bytes: 100 * gib, reset: "month" },
      download_bps: 50_000_000,
      ip_limit: 3,
    },
    { name: "ben" },
    { name: "carla", enabled: false },
    { name: "dmitri", expires_at: Date.now() - 1_000 },
  ];
  const headers = { authorization: `Bearer ${ADMIN_SECRET}` };
  for (const draft of drafts) {
    const answer = await fetch(`${base}/api/admin/inbounds`, { headers });
    const { inbounds } = (await answer.json()) as { inbounds: { revision: number }[] };
    const body = JSON.stringify({ ...draft, inbound: "edge", revision: inbounds[0]?.revision });
    const made = await fetch(`${base}/api/admin/users`, { method: "POST", headers, body });
    if (!made.ok) throw new Error(await made.text());
  }
}

async function showUsers(page: Page): Promise<void> {
  await page.getByLabel("Admin secret").fill(ADMIN_SECRET);
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "anna" }).waitFor();
}

async function take(
  name: string,
  hash: string,
  options: PageOptions = {},
  waitMs = 2_500,
  prepare?: (page: Page) => Promise<void>,
): Promise<void> {
  await using watched = await browser.open({ width: 1060, height: 640, ...options });
  await watched.page.goto(`${base}/ui/#/${hash}`);
  await prepare?.(watched.page);
  await delay(waitMs);
  await watched.page.screenshot({ path: join(FOLDER, `${name}.png`) });
}
