/** Secrets that a person planted are found where they belong and nowhere else. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import {
  ADMIN_SECRET,
  CONTROLLER_SECRET,
  ManagedCore,
  managedConfig,
  stateFolder,
} from "../support/managed-core.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { ANYTLS, CARRIERS, carrierListeners, isServed } from "../support/user-traffic.ts";

const NODE_PASSWORD = "planted-node-password";
const PROXIES = `proxies:
  - { name: far, type: trojan, server: 127.0.0.1, port: 1, password: ${NODE_PASSWORD} }
  - { name: away, type: ss, server: 127.0.0.1, port: 1, cipher: aes-128-gcm, password: ${NODE_PASSWORD} }
proxy-groups:
  - { name: pick, type: select, proxies: [far, away] }
`;

test("secrets of the Controller, the manager, users, subscriptions and nodes: not in logs, errors, lists, metrics or documents", async () => {
  using state = stateFolder();
  const tls = CARRIERS[0] as (typeof CARRIERS)[number];
  const { listeners, managed } = carrierListeners([tls, ANYTLS]);
  const options = {
    listeners: `${listeners}${PROXIES}`,
    managed,
    logLevel: "debug",
    store: state.store,
    folder: state.path,
  };
  await using core = await ManagedCore.start(options);
  await using origin = await openTcpOrigin(echo);
  const planted = new Map([
    ["Controller secret", CONTROLLER_SECRET],
    ["admin secret", ADMIN_SECRET],
    ["node password", NODE_PASSWORD],
  ]);
  for (const backend of [tls, ANYTLS]) {
    const made = await core.create(backend.tag, "ann", backend.another());
    planted.set(`credential of ${backend.tag}`, made.uuid ?? made.password);
    planted.set(`token of ${backend.tag}`, made.subscription_url.split("/").at(-1) as string);
    await using outbound = await backend.open(await core.core.port(backend.tag), made);
    assert.equal(await isServed(outbound, origin.destination), true);
    await using unknownClient = await backend.open(await core.core.port(backend.tag), {
      uuid: randomUUID(),
      password: "guess",
    });
    assert.equal(await isServed(unknownClient, origin.destination), false);
  }
  const said = await everythingSaid(core, planted);
  core.core.write(managedConfig({ ...options, managed: ["none"] })); // an error about the block with the secret
  const refused = await core.ask("PUT", "/configs", { body: { path: "" }, secret: CONTROLLER_SECRET });
  assert.equal(refused.status, 400);
  said.set("refused reload", refused.text);
  said.set("log", core.core.output());
  await core.core.stop();
  said.set("log at the end", core.core.output());
  assert.match(core.core.output(), /level=debug/);
  for (const [place, text] of said)
    for (const [what, secret] of planted)
      assert.ok(!text.includes(secret), `the ${what} is shown by ${place}`);
});

/** Lists, errors, metrics and documents. */
async function everythingSaid(
  core: ManagedCore,
  planted: ReadonlyMap<string, string>,
): Promise<Map<string, string>> {
  const said = new Map<string, string>();
  const note = async (method: string, path: string, secret: string | null, body?: unknown) => {
    const { status, text, headers } = await core.ask(method, path, { secret, body });
    assert.ok(status !== 404 || path.startsWith("/sub/"), `there is no ${path}`);
    said.set(`${method} ${path}`, `${text}\n${[...headers].join("\n")}`);
  };
  for (const path of ["users", "inbounds", "listeners", "overview", "status", "protocols"])
    await note("GET", `/api/admin/${path}`, ADMIN_SECRET);
  const controller = [
    "/configs",
    "/proxies",
    "/proxies/far",
    "/proxies/pick",
    "/group",
    "/providers/proxies",
    "/rules",
    "/connections",
    "/version",
    "/metrics",
    "/openapi.json",
    "/api/svc/capabilities",
    "/proxies/far/delay?timeout=100&url=http://127.0.0.1:1/",
  ];
  for (const path of controller) await note("GET", path, CONTROLLER_SECRET);
  // Errors about bodies that hold secrets of others: a credential that is taken, one of the wrong kind.
  const [vless, anytls] = ["tls", "anytls"].map((tag) => planted.get(`credential of ${tag}`));
  const tries = [
    { inbound: "tls", name: "x", uuid: vless, revision: await core.revision("tls") },
    { inbound: "tls", name: "x", password: anytls, revision: await core.revision("tls") },
    { inbound: "tls", name: "x", uuid: anytls, revision: await core.revision("tls") },
    { inbound: "anytls", name: "x", password: anytls, revision: await core.revision("anytls") },
    { inbound: "anytls", name: "x", uuid: vless, revision: await core.revision("anytls") },
    { inbound: "anytls", name: 5, password: anytls },
  ];
  for (const [at, body] of tries.entries())
    await note("POST", `/api/admin/users?try=${at}`, ADMIN_SECRET, body);
  await note("GET", "/api/admin/users", CONTROLLER_SECRET);
  await note("GET", "/configs", ADMIN_SECRET);
  await note("GET", `/sub/svc/x${planted.get("token of tls")}`, null);
  return said;
}
