/** The built-in dashboard in a real browser, against the real program. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import {
  noBrowser,
  openBrowser,
  type Browser,
  type PageOptions,
  type WatchedPage,
} from "../support/browser.ts";
import { freePorts } from "../support/free-ports.ts";
import { openTcpOrigin } from "../support/origin.ts";
import { startCore, type Core } from "../support/start-core.ts";
import { until } from "../support/until.ts";

const HOSTILE = '<img src=x onerror="document.title=1">';
const AWKWARD = "a/b 50% x#y?";
/** Elements that a reader of the page could not name. */
const NAMELESS = `[...document.querySelectorAll("button, a[href], input, select")]
  .filter((element) => element.checkVisibility())
  .filter((element) => !(element.getAttribute("aria-label") ?? element.textContent.trim()) && !element.labels?.length)
  .map((element) => element.outerHTML)`;

/** Each with something that shows only when its data have come. */
const PAGES: readonly (readonly [title: string, content: string | RegExp])[] = [
  ["Overview", /\d MiB$/],
  ["Connections", /^a-very-long-name/],
  ["Groups", AWKWARD],
  ["Rules", "good.test"],
  ["Usage and limits", "Traffic control is off"],
  ["Users", "No managed users here"],
  ["Nodes", "No managed users here"],
  ["Audit", "No audit log here"],
  ["Tokens", "No tokens here"],
  ["Logs", /listening|listens|relay:/],
  ["DNS query", "Ask the resolver"],
  ["Why there?", "Ask where a connection would go"],
  ["Configuration", "No errors and no warnings"],
  ["Settings", "Running settings"],
];

const config = (mixed: number, controller: number, more = ""): string => `
mixed-port: ${mixed}
external-controller: 127.0.0.1:${controller}
hosts: { "+.test": 127.0.0.1 }
${more}
proxies:
  - { name: '${HOSTILE}', type: socks5, server: 127.0.0.1, port: 1 }
  - { name: '${AWKWARD}', type: http, server: 127.0.0.1, port: 1 }
proxy-groups:
  - { name: Proxy, type: select, proxies: [DIRECT, Auto, '${HOSTILE}', '${AWKWARD}'] }
  - { name: Auto, type: url-test, interval: 0, proxies: [DIRECT, '${AWKWARD}'], url: 'http://127.0.0.1:${controller}/version' }
rules:
  - DOMAIN-SUFFIX,bad.test,REJECT
  - DOMAIN-SUFFIX,good.test,Proxy
  - MATCH,DIRECT
`;

interface Bench extends AsyncDisposable {
  readonly core: Core;
  readonly mixed: number;
  readonly base: string;
  api<T>(path: string): Promise<T>;
  open(hash: string, options?: PageOptions): Promise<WatchedPage>;
}

let browser: Browser;
before(async () => {
  if (noBrowser === false) browser = await openBrowser();
});
after(() => browser?.[Symbol.asyncDispose]());

async function openBench(more = ""): Promise<Bench> {
  const [mixed, controller] = (await freePorts(2)) as [number, number];
  const core = await startCore(config(mixed, controller, more));
  const base = `http://127.0.0.1:${controller}`;
  return {
    core,
    mixed,
    base,
    api: async <T>(path: string) => (await (await fetch(`${base}${path}`)).json()) as T,
    async open(hash, options) {
      const watched = await browser.open(options);
      await watched.page.goto(`${base}/ui/#/${hash}`);
      return watched;
    },
    [Symbol.asyncDispose]: () => core[Symbol.asyncDispose](),
  };
}

/** A tunnel through the mixed port by name, so that rules and the table see it. */
async function openTunnel({ mixed }: Bench, target: string): Promise<Socket> {
  const socket = connect(mixed, "127.0.0.1");
  socket.on("error", () => {}); // the dashboard cuts it
  socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`);
  const [answer] = (await once(socket, "data")) as [Buffer];
  assert.match(answer.toString(), /^HTTP\/1.1 200/);
  return socket;
}

/** By a reset or not: gone is gone. */
const cut = (socket: Socket): Promise<void> => new Promise((done) => void socket.once("close", () => done()));

async function seen(page: Page, text: string | RegExp): Promise<void> {
  await page.getByText(text).first().waitFor();
}

const options = { skip: noBrowser };

test("opens with nothing configured; a member is chosen, pinned and unpinned", options, async () => {
  await using bench = await openBench();
  await using watched = await bench.open("groups");
  const { page, complaints } = watched;
  const members = page.getByRole("list", { name: "Members of Proxy" });
  await members.getByRole("button", { name: AWKWARD, exact: false }).first().click();
  await seen(page, `Proxy now uses ${AWKWARD}`);
  type Answer = { proxies: Record<string, { now: string; fixed: string }> };
  assert.equal((await bench.api<Answer>("/proxies")).proxies["Proxy"]?.now, AWKWARD);
  await members.getByRole("button", { name: HOSTILE, exact: false }).first().click();
  await seen(page, `Proxy now uses ${HOSTILE}`);
  assert.equal((await bench.api<Answer>("/proxies")).proxies["Proxy"]?.now, HOSTILE);
  assert.equal(await page.locator("img").count(), 0, "names are text");

  const auto = page.getByRole("list", { name: "Members of Auto" });
  await auto.getByRole("button", { name: `Test the delay of DIRECT` }).click();
  await auto.getByText(/^\d+ ms$/).waitFor();
  await auto.getByRole("button", { name: "DIRECT Direct" }).click();
  await page.getByRole("button", { name: "Unpin DIRECT" }).click();
  await seen(page, "Auto picks by itself again");
  assert.equal((await bench.api<Answer>("/proxies")).proxies["Auto"]?.fixed, "");
  assert.deepEqual(complaints, []);
});

test("asks for the secret, says when it is wrong, keeps a session in its place", options, async () => {
  await using bench = await openBench("secret: open sesame ü");
  await using watched = await bench.open("overview");
  const { page, complaints } = watched;
  const field = page.getByLabel("Secret");
  await field.fill("guess");
  await page.keyboard.press("Enter");
  await seen(page, "That is not the secret.");
  await field.fill("open sesame ü");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await page.getByText(/MiB$/).first().waitFor(); // a WebSocket took the secret too
  const kept = await page.evaluate(
    "JSON.stringify([localStorage, sessionStorage, document.cookie, location.href])",
  );
  assert.doesNotMatch(String(kept), /sesame/);
  await page.reload();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  // what the browser itself says of a refused request is no fault
  assert.deepEqual(
    complaints.filter((text) => !text.includes("401 (Unauthorized)")),
    [],
  );
});

test("a live transfer appears, shows its rule and way, and is closed", options, async () => {
  await using bench = await openBench();
  await using origin = await openTcpOrigin(
    (socket) => void socket.on("data", () => socket.write("pong".repeat(500))),
  );
  const socket = await openTunnel(bench, `www.good.test:${origin.port}`);
  await using watched = await bench.open("connections");
  const { page, complaints } = watched;
  socket.write("ping");
  await page.getByRole("button", { name: `www.good.test:${origin.port}`, exact: true }).click();
  const details = page.getByRole("dialog");
  await details.getByText("DomainSuffix good.test").waitFor();
  await details.getByText("Proxy → DIRECT").waitFor();
  await details.getByText(/^1\.95 KiB/).waitFor();
  await page.keyboard.press("Escape");
  await details.waitFor({ state: "detached" });
  await page.getByRole("cell", { name: "DomainSuffix good.test" }).click();
  await details.waitFor(); // a row opens wherever it is clicked
  await page.keyboard.press("Escape");
  await details.waitFor({ state: "detached" });
  await page.getByRole("button", { name: `www.good.test:${origin.port}`, exact: true }).focus();
  await page.keyboard.press("Enter");
  await details.waitFor();
  await page.keyboard.press("Escape");
  await page.getByLabel("Filter").fill("no such thing");
  await seen(page, "Nothing matches the filter");
  await page.getByLabel("Filter").fill("good");
  const closed = cut(socket);
  await page.getByRole("button", { name: `Close www.good.test:${origin.port}` }).click();
  await closed;
  const second = await openTunnel(bench, `more.good.test:${origin.port}`);
  await page.getByLabel("Filter").fill("");
  await seen(page, `more.good.test:${origin.port}`);
  const gone = cut(second);
  await page.getByRole("button", { name: "Close all" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Close all" }).click();
  await gone;
  await seen(page, "No connections");
  await page.getByRole("group", { name: "Which" }).getByRole("button", { name: "Ended" }).click();
  await page.getByRole("button", { name: `more.good.test:${origin.port}`, exact: true }).click();
  await details.getByText("It has ended").waitFor();
  await details.getByText("closed", { exact: true }).waitFor();
  await page.keyboard.press("Escape");
  await page.reload(); // it is the program that remembers them
  await page.getByRole("group", { name: "Which" }).getByRole("button", { name: "Ended" }).click();
  await page.getByRole("button", { name: `www.good.test:${origin.port}`, exact: true }).waitFor();
  assert.deepEqual(complaints, []);
});

test("rules are switched off, hits counted, ways explained, the mode changed", options, async () => {
  await using bench = await openBench();
  await using watched = await bench.open("rules");
  const { page, complaints } = watched;
  const rule = page.getByRole("switch", { name: "Rule 0, DomainSuffix bad.test" });
  await rule.click();
  await page.getByRole("switch", { name: "Rule 0, DomainSuffix bad.test", checked: false }).waitFor();
  type Rules = { rules: { extra: { disabled: boolean } }[] };
  assert.equal((await bench.api<Rules>("/rules")).rules[0]?.extra.disabled, true);
  await rule.click();
  await page.getByRole("switch", { name: "Rule 0, DomainSuffix bad.test", checked: true }).waitFor();

  await page.getByRole("link", { name: "Why there?" }).click();
  await page.getByLabel("Name, address or URL").fill("http://www.bad.test/a/page?of=it");
  await page.keyboard.press("Enter");
  await seen(page, "www.bad.test:80 tcp from 127.0.0.1");
  await seen(page, "It goes to REJECT");
  await page.getByLabel("Name, address or URL").fill("no host at all");
  await page.keyboard.press("Enter");
  await seen(page, /expected a name, an address, host:port/);
  await page.getByLabel("Name, address or URL").fill("www.bad.test");
  await page.keyboard.press("Enter");
  await seen(page, "www.bad.test:443 tcp from 127.0.0.1");
  await seen(page, /0: DomainSuffix bad.test/);

  await page.getByRole("link", { name: "Settings" }).click();
  await page.getByRole("group", { name: "Mode" }).getByRole("button", { name: "direct" }).click();
  await seen(page, "Mode direct");
  assert.equal((await bench.api<{ mode: string }>("/configs")).mode, "direct");
  await page.getByRole("switch", { name: "Try all addresses of a name at once" }).click();
  await until(
    "tcp-concurrent is on",
    async () => (await bench.api<Record<string, unknown>>("/configs"))["tcp-concurrent"] === true,
  );
  await page.getByLabel("Log level").selectOption("warning");
  await until(
    "the level is set",
    async () => (await bench.api<Record<string, unknown>>("/configs"))["log-level"] === "warning",
  );
  // what the browser itself says of a question that cannot be understood is no fault
  assert.deepEqual(
    complaints.filter((text) => !text.includes("400 (Bad Request)")),
    [],
  );
});

test(
  "log lines come as they happen, by level, and stop when paused; DNS answers or says why not",
  options,
  async () => {
    await using bench = await openBench();
    await using origin = await openTcpOrigin((socket) => void socket.end());
    await using watched = await bench.open("logs");
    const { page, complaints } = watched;
    await seen(page, /relay: /); // said at the start, before any page was open
    await until("a line is shown", async () => {
      (await openTunnel(bench, `one.good.test:${origin.port}`)).destroy();
      return (
        (await page
          .getByRole("log")
          .getByText(/one\.good\.test/)
          .count()) > 0
      );
    });
    await page.getByRole("button", { name: "Pause" }).click();
    const resume = page.getByRole("button", { name: "Resume" });
    await resume.waitFor();
    (await openTunnel(bench, `two.good.test:${origin.port}`)).destroy();
    await bench.core.shows(/two\.good\.test/); // the page has it, and drops it
    await resume.click();
    await until("lines come again", async () => {
      (await openTunnel(bench, `three.good.test:${origin.port}`)).destroy();
      return (
        (await page
          .getByRole("log")
          .getByText(/three\.good\.test/)
          .count()) > 0
      );
    });
    assert.equal(await page.getByText(/two\.good\.test/).count(), 0);
    await page.getByLabel("Level").selectOption("error");
    await seen(page, "Lines of level error and above");

    await page.getByRole("link", { name: "DNS query" }).click();
    await page.getByRole("textbox", { name: "Name" }).fill("www.good.test");
    await page.keyboard.press("Enter");
    await seen(page, "DNS section is disabled");
    assert.deepEqual(
      complaints.filter((text) => !text.includes("500 (Internal Server Error)")),
      [],
    );
  },
);

test("by the keyboard alone", options, async () => {
  await using bench = await openBench();
  await using watched = await bench.open("overview");
  const { page, complaints } = watched;
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  const focused = () => page.evaluate("document.activeElement.textContent");
  assert.equal(await focused(), "Overview", "the heading of a fresh page has the focus");
  // the links stand before the heading, Settings nearest
  for (let at = 0; at < PAGES.length && (await focused()) !== "Rules"; at++)
    await page.keyboard.press("Shift+Tab");
  assert.equal(await focused(), "Rules");
  const outline = await page.evaluate("getComputedStyle(document.activeElement).outlineStyle");
  assert.equal(outline, "solid", "the focus can be seen");
  await page.keyboard.press("Enter");
  await page.getByRole("switch").first().waitFor();
  assert.equal(await focused(), "Rules");
  for (let at = 0; at < 10; at++) await page.keyboard.press("Tab"); // filter, button, table, six heads, the first switch
  await page.keyboard.press("Space");
  await page.getByRole("switch", { checked: false }).waitFor();
  assert.deepEqual(complaints, []);
});

for (const colorScheme of ["light", "dark"] as const)
  test(
    `every page at 360 pixels, ${colorScheme}: nothing sticks out, everything has a name`,
    options,
    async () => {
      await using bench = await openBench();
      await using origin = await openTcpOrigin(() => {});
      const socket = await openTunnel(
        bench,
        `a-very-long-name-of-a-host-that-does-not-fit.good.test:${origin.port}`,
      );
      await using watched = await bench.open("overview", { width: 360, height: 640, colorScheme });
      const { page, complaints } = watched;
      for (const [title, content] of PAGES) {
        if (title !== "Overview") {
          await page.getByRole("button", { name: "Menu" }).click();
          await page.getByRole("link", { name: title, exact: true }).click();
        }
        await page.getByRole("heading", { name: title, level: 1 }).waitFor();
        await seen(page, content);
        const excess = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
        assert.equal(excess, 0, title);
        const inner = await page.evaluate(
          "document.querySelector('main').scrollWidth - document.querySelector('main').clientWidth",
        );
        assert.equal(inner, 0, `${title}, inside`);
        assert.deepEqual(await page.evaluate(NAMELESS), [], title);
      }
      const ground = String(await page.evaluate("getComputedStyle(document.body).backgroundColor"));
      assert.equal(ground, colorScheme === "dark" ? "rgb(15, 20, 24)" : "rgb(245, 247, 248)");
      await page.getByLabel("Colours").selectOption(colorScheme === "dark" ? "light" : "dark");
      const other = String(await page.evaluate("getComputedStyle(document.body).backgroundColor"));
      assert.notEqual(other, ground, "the choice beats the system");
      socket.destroy();
      // that nothing is managed is found out by asking
      assert.deepEqual(
        complaints.filter((text) => !text.includes("404 (Not Found)")),
        [],
      );
    },
  );

test("says when the Controller has gone, and goes on when it is back", options, async () => {
  await using bench = await openBench();
  await using watched = await bench.open("overview");
  const { page } = watched;
  await page.getByText(/MiB$/).first().waitFor();
  await bench.core.stop();
  await seen(page, /Controller unreachable/);
  await using _again = await startCore(config(bench.mixed, Number(new URL(bench.base).port)));
  await page.getByText(/Controller unreachable/).waitFor({ state: "detached" });
  await page.getByRole("link", { name: "Rules" }).click();
  await seen(page, "3 rules");
});
