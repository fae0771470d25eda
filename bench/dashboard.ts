/** The built-in dashboard in a real browser: its size, the first paint, and how long a step of search and scrolling takes. */
import { globSync, readFileSync } from "node:fs";
import { loadavg } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Page } from "playwright-core";
import { noBrowser, openBrowser, type Browser } from "../test/support/browser.ts";
import { freePorts } from "../test/support/free-ports.ts";
import { ADMIN_SECRET, CONTROLLER_SECRET, ManagedCore, stateFolder } from "../test/support/managed-core.ts";
import { makeState } from "../test/support/many-users.ts";
import { openTcpOrigin } from "../test/support/origin.ts";
import { quantile } from "../test/support/slow-clients.ts";
import { startCore } from "../test/support/start-core.ts";
import { openTunnel } from "../test/support/tunnels.ts";
import { builtInUiFolder } from "#host/ui-folder.ts";

export const NAME = "dashboard";

const USERS = 10_000;
const CONNECTIONS = 5_000;
const AT_ONCE = 100;
const VISITS = 7;
const STEPS = 20;

/** From the input to the second frame behind it, by which the first one is on the screen. */
const TYPE = `async (text) => {
  const field = document.querySelector("input[type=search]");
  const startMs = performance.now();
  Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(field, text);
  field.dispatchEvent(new Event("input", { bubbles: true }));
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  return performance.now() - startMs;
}`;
const SCROLL = `async (step) => {
  const startMs = performance.now();
  window.scrollBy(0, step);
  for (const box of document.querySelectorAll("main, main *")) if (box.scrollHeight > box.clientHeight + 99) box.scrollTop += step;
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  return performance.now() - startMs;
}`;

export async function run(out: (line: string) => void): Promise<void> {
  if (noBrowser !== false) return out(noBrowser);
  tellSize(out);
  await using browser = await openBrowser();
  await tellUsers(browser, out);
  await tellConnections(browser, out);
  out(`load ${loadavg()[0]?.toFixed(1)}`);
}

function tellSize(out: (line: string) => void): void {
  const folder = builtInUiFolder();
  const files = globSync("*.*", { cwd: folder });
  const sizes = files.map((file) => gzipSync(readFileSync(join(folder, file)), { level: 9 }).length);
  const sum = sizes.reduce((total, size) => total + size, 0);
  out(`all files with all languages, gzipped: ${(sum / 1024).toFixed(0)} KiB`);
}

async function tellUsers(browser: Browser, out: (line: string) => void): Promise<void> {
  using state = stateFolder();
  makeState(state.store, { edge: "vless" }, USERS);
  await using core = await ManagedCore.start({ store: state.store, folder: state.path });
  const sessions = {
    "weir.session": await sessionBy(core, CONTROLLER_SECRET),
    "weir.session.admin": await sessionBy(core, ADMIN_SECRET),
  };
  await tellPaint(browser, `${core.url}/ui/`, out);
  await using watched = await browser.open({ width: 1280 });
  const { page } = watched;
  await page.addInitScript(`Object.assign(sessionStorage, ${JSON.stringify(sessions)})`);
  await page.goto(`${core.url}/ui/#/users`);
  await page.getByRole("button", { name: "user 1", exact: true }).waitFor();
  await tellSteps(page, `${USERS} users`, ["u", "us", "user 9", "user 99", "user 9999", ""], out);
}

async function sessionBy(core: ManagedCore, secret: string): Promise<string> {
  const { text } = await core.ask("POST", "/api/svc/session", { secret });
  const { token }: { readonly token: string } = JSON.parse(text);
  return token;
}

async function tellPaint(browser: Browser, address: string, out: (line: string) => void): Promise<void> {
  const paints: number[] = [];
  for (let visit = 0; visit < VISITS; visit++) {
    await using watched = await browser.open({ width: 1280 });
    await watched.page.goto(address);
    await watched.page.getByRole("heading", { level: 1 }).first().waitFor();
    paints.push(
      Number(
        await watched.page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"),
      ),
    );
  }
  const ascending = paints.toSorted((a, b) => a - b);
  out(
    `first paint with an empty cache: median ${quantile(ascending, 0.5).toFixed(0)} ms, longest ${ascending.at(-1)?.toFixed(0)} ms`,
  );
}

async function tellConnections(browser: Browser, out: (line: string) => void): Promise<void> {
  const [mixed, controller] = (await freePorts(2)) as [number, number];
  await using origin = await openTcpOrigin((socket) => void socket.resume());
  await using _core = await startCore(
    `mixed-port: ${mixed}\nexternal-controller: 127.0.0.1:${controller}\nrules: ["MATCH,DIRECT"]\n`,
  );
  await using tunnels = new AsyncDisposableStack();
  const to = { host: "127.0.0.1", port: origin.port };
  for (let opened = 0; opened < CONNECTIONS; opened += AT_ONCE)
    for (const socket of await Promise.all(
      Array.from({ length: AT_ONCE }, () => openTunnel("connect", mixed, "127.0.0.1", to)),
    ))
      tunnels.defer(() => void socket.destroy());
  await using watched = await browser.open({ width: 1280 });
  const { page } = watched;
  await page.goto(`http://127.0.0.1:${controller}/ui/#/connections`);
  await page
    .getByRole("button", { name: `127.0.0.1:${origin.port}`, exact: true })
    .first()
    .waitFor();
  await tellSteps(page, `${CONNECTIONS} connections`, ["1", "127", "127.0", "nothing", ""], out);
}

async function tellSteps(
  page: Page,
  what: string,
  texts: readonly string[],
  out: (line: string) => void,
): Promise<void> {
  const typed: number[] = [];
  for (let round = 0; round < 3; round++)
    for (const text of texts) typed.push(Number(await page.evaluate(`(${TYPE})(${JSON.stringify(text)})`)));
  const scrolled: number[] = [];
  for (let step = 0; step < STEPS; step++) scrolled.push(Number(await page.evaluate(`(${SCROLL})(3000)`)));
  const shown = (values: readonly number[]): string => {
    const ascending = values.toSorted((a, b) => a - b);
    return `median ${quantile(ascending, 0.5).toFixed(0)} ms, longest ${ascending.at(-1)?.toFixed(0)} ms`;
  };
  out(`${what}: a step of search ${shown(typed)}; of scrolling ${shown(scrolled)}`);
}
