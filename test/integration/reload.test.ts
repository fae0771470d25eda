/** A reload interrupts nothing; a bad configuration changes nothing; SIGTERM ends in time. */
import assert from "node:assert/strict";
import { connect } from "node:net";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { brokenConfigs } from "../support/broken-configs.ts";
import { freePorts } from "../support/free-ports.ts";
import { listensAt } from "../support/listening-at.ts";
import { type Core, startCore } from "../support/start-core.ts";
import { openSteadyTransfer, SteadyOrigin, type SteadyTransfer } from "../support/steady-transfers.ts";
import { until } from "../support/until.ts";

const RELOADS = Number(process.env["WEIR_TEST_RELOADS"] ?? 1000);
const TRANSFERS = 200;

/** Every round has other rules, another proxy and another listener; the mixed port stays. */
function configText(round: number, ports: readonly number[]): string {
  const [mixed, controller, first, second] = ports as [number, number, number, number];
  return `
mixed-port: ${mixed}
external-controller: 127.0.0.1:${controller}
log-level: info
proxies:
  - { name: node ${round}, type: socks5, server: 127.0.0.1, port: ${1000 + (round % 1000)} }
proxy-groups:
  - { name: G, type: select, proxies: [node ${round}, DIRECT] }
listeners:
  - { name: side ${round}, type: ${round % 2 === 0 ? "socks" : "http"}, listen: 127.0.0.1, port: ${round % 3 === 0 ? first : second} }
rules:
  - DOMAIN-SUFFIX,round${round}.example,G
  - IP-CIDR,127.0.0.0/8,DIRECT
  - MATCH,REJECT
`;
}

async function put(controller: number, body: object): Promise<{ status: number; message: string }> {
  const answer = await fetch(`http://127.0.0.1:${controller}/configs?force=true`, {
    method: "PUT",
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  return {
    status: answer.status,
    message: text === "" ? "" : (JSON.parse(text) as { message: string }).message,
  };
}

async function openTransfers(mixed: number, origin: SteadyOrigin): Promise<SteadyTransfer[]> {
  const transfers: SteadyTransfer[] = [];
  for (let at = 0; at < TRANSFERS; at++) transfers.push(await openSteadyTransfer(mixed, origin.port));
  return transfers;
}

async function finishAll(transfers: readonly SteadyTransfer[], origin: SteadyOrigin): Promise<void> {
  origin.finish();
  const results = await Promise.all(transfers.map((transfer) => transfer.finish()));
  await origin.idle();
  const broken = results.filter(({ intact, received }) => !intact || received === 0);
  assert.deepEqual(broken, [], "a download was interrupted or changed");
  const sent = results.map((result) => result.sent).sort((a, b) => a - b);
  const arrived = origin.uploads.map(({ received }) => received).sort((a, b) => a - b);
  assert.ok(origin.uploads.every(({ intact }) => intact));
  assert.deepEqual(arrived, sent, "an upload was cut");
}

async function canConnect(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  const connected = await once(socket, "connect").then(
    () => true,
    () => false,
  );
  socket.destroy();
  return connected;
}

/** Of this program: a port that it does not have may be that of another test. */
async function isOpen({ pid }: Core, port: number): Promise<boolean> {
  return process.platform === "linux" ? listensAt(pid, port) : canConnect(port);
}

test(`${RELOADS} reloads under ${TRANSFERS} transfers interrupt none`, async (context) => {
  const ports = await freePorts(4);
  const [mixed, controller, first, second] = ports as [number, number, number, number];
  await using origin = await SteadyOrigin.open();
  await using core = await startCore(configText(0, ports));
  const transfers = await openTransfers(mixed, origin);
  for (let round = 1; round <= RELOADS; round++) {
    core.write(configText(round, ports));
    assert.deepEqual(await put(controller, { path: "" }), { status: 204, message: "" }, `round ${round}`);
  }
  assert.deepEqual(
    transfers.filter(({ failure }) => failure !== null),
    [],
  );
  const rules = (await (await fetch(`http://127.0.0.1:${controller}/rules`)).json()) as {
    rules: { payload: string }[];
  };
  assert.equal(rules.rules[0]?.payload, `round${RELOADS}.example`);
  const [kept, givenUp] = RELOADS % 3 === 0 ? [first, second] : [second, first];
  assert.equal(await isOpen(core, kept), true);
  // The answer comes with the swap; what the old configuration had is closed behind it.
  await until("the port that was given up is closed", async () => !(await isOpen(core, givenUp)));
  await finishAll(transfers, origin);
  context.diagnostic(`${RELOADS} reloads, ${TRANSFERS} transfers, 0 interrupted`);
});

/** What can be seen from outside: listeners, rules, nodes, and where a connection goes. */
async function observe(core: Core, ports: readonly number[]): Promise<string> {
  const controller = ports[1];
  const get = async (path: string) =>
    (await (await fetch(`http://127.0.0.1:${controller}${path}`)).json()) as Record<string, unknown>;
  const { rules } = (await get("/rules")) as { rules: { type: string; payload: string; proxy: string }[] };
  const { proxies } = (await get("/proxies")) as { proxies: object };
  const open = await Promise.all(ports.map((port) => isOpen(core, port)));
  return JSON.stringify([
    rules.map(({ type, payload, proxy }) => [type, payload, proxy]),
    Object.keys(proxies),
    open,
    await get("/configs"),
  ]);
}

test("200 broken configurations change nothing and say where they are wrong", async (context) => {
  const ports = await freePorts(4);
  const [mixed, controller] = ports as [number, number];
  await using origin = await SteadyOrigin.open();
  await using core = await startCore(configText(0, ports));
  const transfers = await openTransfers(mixed, origin);
  const before = await observe(core, ports);
  const file = join(core.home, "config.yaml");
  const broken = brokenConfigs();
  assert.ok(broken.length >= 200);
  for (const { name, text } of broken) {
    writeFileSync(file, text);
    const { status, message } = await put(controller, { path: "" });
    assert.equal(status, 400, `${name}: ${message}`);
    assert.match(message, /config\.yaml:\d+:\d+ \S+: /, name);
    assert.equal(await observe(core, ports), before, name);
  }
  assert.deepEqual(
    transfers.filter(({ failure }) => failure !== null),
    [],
  );
  await finishAll(transfers, origin);
  context.diagnostic(`${broken.length} broken configurations, nothing changed`);
});

test("SIGTERM under load ends with exit code 0 within the deadline", async () => {
  const ports = await freePorts(4);
  const [mixed] = ports as [number];
  await using origin = await SteadyOrigin.open();
  await using core = await startCore(configText(0, ports));
  await openTransfers(mixed, origin);
  const startedMs = performance.now();
  assert.equal(await core.stop("SIGTERM"), 0);
  assert.ok(performance.now() - startedMs < 10_000);
  assert.equal(await canConnect(mixed), false);
});

test("controller-api.md §15.12 SIGHUP reads the file again; a bad one is only logged", async () => {
  const ports = await freePorts(4);
  const [, controller] = ports as [number, number];
  await using core = await startCore(configText(0, ports));
  await core.reload(configText(7, ports));
  const payloads = await (await fetch(`http://127.0.0.1:${controller}/rules`)).text();
  assert.match(payloads, /round7\.example/);
  await core.reload(
    "mode: nonsense\n",
    /reload failed, the old configuration goes on:.*config\.yaml:1:7 mode: /,
  );
});
