/** The built-in dashboard tests all nodes at a time that can be ended, and shows what a provider says of the account. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { noBrowser, openBrowser, type Browser } from "../support/browser.ts";
import { freePorts } from "../support/free-ports.ts";
import { openTcpOrigin } from "../support/origin.ts";
import { startCore } from "../support/start-core.ts";
import { until } from "../support/until.ts";

const NODES = 40;
let browser: Browser;
before(async () => {
  if (noBrowser === false) browser = await openBrowser();
});
after(() => browser?.[Symbol.asyncDispose]());

/** Lists of nodes, each with what it says of the account. */
async function openProvider(node: (name: string) => string) {
  const server = createServer(({ url = "" }, response) => {
    const [, prefix = "", expire = ""] = url.split("/");
    response.setHeader(
      "subscription-userinfo",
      `upload=1048576; download=2097152; total=4194304; expire=${expire}`,
    );
    response.end(
      `proxies:\n${Array.from({ length: NODES / 2 }, (_, at) => node(`${prefix}${at}`)).join("\n")}\n`,
    );
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    url: (path: string): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}/${path}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

test("all nodes are tested, with what was done so far, and cancelled", { skip: noBrowser }, async () => {
  let asked = 0;
  await using silent = await openTcpOrigin(() => void asked++);
  await using provider = await openProvider(
    (name) => `  - { name: ${name}, type: http, server: 127.0.0.1, port: ${silent.port} }`,
  );
  const [controller] = (await freePorts(1)) as [number];
  const later = Math.floor(Date.now() / 1000) + 40 * 86_400;
  await using core = await startCore(`
external-controller: 127.0.0.1:${controller}
proxy-providers:
  good: { type: http, url: "${provider.url(`g/${later}`)}", path: good.yaml, interval: 3600 }
  over: { type: http, url: "${provider.url("o/1000000000")}", path: over.yaml, interval: 3600 }
proxy-groups: [{ name: All, type: select, use: [good, over], url: "http://127.0.0.1:1/" }]
rules: ["MATCH,DIRECT"]
`);
  const base = `http://127.0.0.1:${controller}`;
  await until("the nodes are there", async () => {
    const { all }: { all: readonly string[] } = await (await fetch(`${base}/proxies/All`)).json();
    return all.length === NODES;
  });
  await using watched = await browser.open();
  const { page, complaints } = watched;
  await page.goto(`${base}/ui/#/groups`);
  await page.getByText(/3\.00 MiB of 4\.00 MiB used, good until/).waitFor();
  await page.getByText(/3\.00 MiB of 4\.00 MiB used, expired/).waitFor();
  await page.getByRole("button", { name: "Test all nodes" }).click();
  await page.getByText(`of ${NODES + 1} nodes tested`).waitFor(); // DIRECT is one, too
  await until("some are asked", () => asked > 0);
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Test all nodes" }).waitFor(); // those under way have come to an end
  assert.ok(asked > 0 && asked < NODES, `${asked} of ${NODES} were asked`);
  assert.deepEqual(
    complaints.filter((text) => !/50[34]/.test(text)), // the browser's own words on nodes that do not answer
    [],
  );
  assert.equal(await core.stop(), 0);
});
