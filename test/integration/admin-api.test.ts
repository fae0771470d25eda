/** The admin API of the real program: who may call, what each call answers, and that changes cannot overlap. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { request } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import {
  type AnyJson,
  ADMIN_SECRET,
  CONTROLLER_SECRET,
  ManagedCore,
  managedConfig,
  stateFolder,
} from "../support/managed-core.ts";
import { FLEET_VARIABLE } from "../support/fleet-beside.ts";
import { startCore } from "../support/start-core.ts";

/** Every program of these tests is a node, and a second one watches it. */
const isFleet = FLEET_VARIABLE in process.env;
let core: ManagedCore;
before(async () => void (core = await ManagedCore.start()));
after(async () => await core[Symbol.asyncDispose]());

const WRONG = "a wrong secret of more than thirty bytes";

test("svc-admin-api §15.1 404, 403, 401, in this order, for all eight cases", async () => {
  await using off = await ManagedCore.start({ off: true });
  for (const manager of [true, false])
    for (const origin of ["own", "http://evil.example"])
      for (const secret of [ADMIN_SECRET, WRONG]) {
        const target = manager ? core : off;
        const headers = { origin: origin === "own" ? target.url : origin };
        const said = await target.ask("GET", "/api/admin/overview", { headers, secret });
        const wanted = !manager ? 404 : origin !== "own" ? 403 : secret === WRONG ? 401 : 200;
        assert.equal(said.status, wanted, `${manager} ${origin} ${secret}`);
        assert.equal(said.headers.get("cache-control"), "no-store");
        if (wanted === 404) assert.match(said.headers.get("content-type") ?? "", /^text\/plain/);
        if (wanted === 401) assert.equal(said.headers.get("www-authenticate"), "Bearer");
        if (wanted === 401 || wanted === 403) assert.equal(typeof said.json.message, "string");
      }
});

test("the secrets do not open each other's routes", async () => {
  for (const path of ["overview", "status", "inbounds", "listeners", "users", "protocols", "users/x"]) {
    const answers = [CONTROLLER_SECRET, null].map((secret) =>
      core.ask("GET", `/api/admin/${path}`, { secret }),
    );
    assert.deepEqual(
      (await Promise.all(answers)).map(({ status }) => status),
      [401, 401],
      path,
    );
  }
  assert.equal((await core.ask("GET", "/configs")).status, 401);
  assert.equal((await core.ask("GET", "/configs", { secret: CONTROLLER_SECRET })).status, 200);
});

test("an origin passes only as our own", async () => {
  const { host } = new URL(core.url);
  const cases: readonly (readonly [Record<string, string>, number])[] = [
    [{}, 200],
    [{ origin: `http://${host.toUpperCase()}` }, 200],
    [{ origin: `https://${host}` }, 403],
    [{ origin: `https://${host}`, "x-forwarded-proto": "https, http" }, 200],
    [{ origin: `http://${host}`, "x-forwarded-proto": "https" }, 403],
    [{ origin: "null" }, 403],
    [{ origin: "http://127.0.0.1" }, 403],
    [{ origin: core.url, "sec-fetch-site": "cross-site" }, 403],
    [{ origin: "http://evil.example", "x-forwarded-host": "evil.example" }, 403],
  ];
  for (const [headers, status] of cases)
    assert.equal(await rawStatus(core.url, headers), status, JSON.stringify(headers));
});

/** `fetch` sets some of these headers itself. */
function rawStatus(
  target: string | { socketPath: string },
  headers: Record<string, string>,
  path = "/api/admin/overview",
): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const at = typeof target === "string" ? { host: "127.0.0.1", port: new URL(target).port } : target;
  const all = { authorization: `Bearer ${ADMIN_SECRET}`, ...headers };
  request({ ...at, path, headers: all, agent: false }, (response) => {
    response.resume();
    resolve(response.statusCode ?? 0);
  })
    .on("error", reject)
    .end();
  return promise;
}

test("every status of a change, the first failing check answering", async () => {
  const alice = await core.create("edge", "alice");
  const revision = await core.revision("edge");
  const at = `/api/admin/users/${alice["id"]}`;
  const big = `{"name":"${"x".repeat(1_048_576)}"}`;
  const cases: readonly (readonly [number, string, string, unknown])[] = [
    [413, "POST", "/api/admin/users", big],
    [400, "POST", "/api/admin/users", ""],
    [400, "POST", "/api/admin/users", "{"],
    [400, "POST", "/api/admin/users", `${JSON.stringify({ inbound: "edge", name: "x", revision })} x`],
    [400, "POST", "/api/admin/users", { inbound: "edge", name: "x" }],
    [400, "POST", "/api/admin/users", { inbound: "none", name: "x", revision: `${revision}` }],
    [400, "POST", "/api/admin/users", { inbound: "none", name: "x", revision: 1.5 }],
    [400, "POST", "/api/admin/users", { inbound: "none", name: "x", revision: 0 }],
    [400, "POST", "/api/admin/users", { inbound: "edge", name: 5, revision: 1 }],
    [404, "POST", "/api/admin/users", { inbound: "none", name: "", revision: 1 }],
    [404, "POST", "/api/admin/users", { name: "x", revision }],
    [409, "POST", "/api/admin/users", { inbound: "edge", name: "", revision: 1 }],
    [400, "POST", "/api/admin/users", { inbound: "edge", name: " ", revision }],
    [400, "POST", "/api/admin/users", { inbound: "edge", name: "x".repeat(257), revision }],
    [400, "POST", "/api/admin/users", { inbound: "edge", name: "ALICE", revision }],
    [400, "POST", "/api/admin/users", { inbound: "edge", name: "x", uuid: "not-a-uuid", revision }],
    [
      400,
      "POST",
      "/api/admin/users",
      { inbound: "edge", name: "x", uuid: alice.uuid.toUpperCase(), revision },
    ],
    [400, "POST", "/api/admin/users", { inbound: "edge", name: "x", password: "p", revision }],
    [400, "POST", "/api/admin/users", { inbound: "edge", name: "x", flow: "other", revision }],
    [404, "PUT", "/api/admin/users/none", { revision: 1 }],
    [409, "PUT", at, { revision: revision - 1, name: "" }],
    [400, "PUT", at, { revision, uuid: "" }],
    [400, "PUT", at, { revision, enabled: "yes" }],
    [400, "DELETE", at, undefined],
    [400, "DELETE", `${at}?revision=x`, undefined],
    [400, "DELETE", `${at}?revision=-1`, undefined],
    [404, "DELETE", "/api/admin/users/none?revision=1", undefined],
    [409, "DELETE", `${at}?revision=1`, undefined],
    [404, "POST", "/api/admin/users/none/reset-traffic", { revision: 1 }],
    [409, "POST", `${at}/reset-traffic`, { revision: 1 }],
    [400, "POST", `${at}/rotate-subscription`, {}],
    [409, "POST", `${at}/rotate-subscription`, { revision: 1 }],
    [404, "GET", "/api/admin/users/none", undefined],
    [404, "GET", "/api/admin/users/", undefined],
    [404, "GET", "/api/admin/nothing", undefined],
    [405, "DELETE", "/api/admin/overview", undefined],
    [200, "GET", `${at}`, undefined],
  ];
  for (const [status, method, path, body] of cases) {
    const said = await core.ask(method, path, { body });
    assert.equal(
      said.status,
      status,
      `${method} ${path} ${JSON.stringify(body)?.slice(0, 100)}: ${said.text}`,
    );
    if (status === 400 || status === 409 || status === 413) {
      assert.equal(typeof said.json.message, "string");
      assert.equal(said.json.error, said.json.message);
    }
    if (status === 409) assert.match(said.json.message, new RegExp(`\\b${revision}\\b`));
  }
  assert.equal(await core.revision("edge"), revision, "a refused change leaves the revision alone");
});

test("views have the members of the manual, and lists hold no credentials", async () => {
  await using core = await ManagedCore.start();
  await core.create("edge", "alice");
  const bob = await core.create("side", "bob");
  assert.match(bob.password, /^[A-Za-z0-9_-]{43}$/);
  assert.equal(bob.flow, "");
  const own = await core.ask("POST", "/api/admin/users", {
    body: {
      inbound: "edge",
      name: "carol",
      flow: "xtls-rprx-vision",
      uuid: null,
      revision: await core.revision("edge"),
      extra: 1,
    },
  });
  assert.equal(own.status, 201);
  assert.equal(own.json.flow, "xtls-rprx-vision");
  const { json, text } = await core.ask("GET", "/api/admin/users");
  assert.ok(!text.includes(bob.password) && !text.includes(own.json.uuid) && !text.includes("/sub/svc/"));
  assert.equal(
    Object.keys(json.users[0] ?? {}).join(" "),
    "id inbound type name flow enabled upload_bytes download_bytes traffic_generation created_at updated_at active_connections revision applied_revision",
  );
  assert.equal(
    Object.keys(json.inbounds[0] ?? {})
      .filter((key) => !isFleet || !["applied", "pending"].includes(key)) // of nodes
      .join(" "),
    "tag type managed credential flow traffic user_count enabled_user_count revision applied_revision",
  );
  const names = json.users.map(({ inbound, name }) => `${inbound} ${name}`);
  assert.deepEqual(names, ["edge alice", "edge carol", "side bob"]);
  const filtered = await core.ask("GET", "/api/admin/users?inbound=side");
  assert.deepEqual([filtered.json.users.length, filtered.json.inbounds.length], [1, 2]);
  assert.deepEqual((await core.ask("GET", "/api/admin/users?inbound=none")).json.users, []);
  const inbounds = (await core.ask("GET", "/api/admin/listeners")).json;
  assert.deepEqual(inbounds.inbounds, inbounds.listeners);
  const overview = (await core.ask("GET", "/api/admin/status")).json;
  assert.deepEqual(overview.users, { total: 3, enabled: 3, disabled: 0 });
  assert.deepEqual(overview.capabilities, { quota: false, expiration: false });
  assert.deepEqual(overview.inbounds, inbounds.inbounds);
  const { protocols, additional_protocols } = (await core.ask("GET", "/api/admin/protocols")).json;
  const types = (list: readonly { readonly type: string }[]) => list.map(({ type }) => type);
  assert.deepEqual(types(protocols), ["vless", "anytls"], "those of the contract");
  assert.deepEqual(types(additional_protocols), ["hysteria2", "tuic"]);
  const about = await core.ask("GET", "/api/svc/capabilities", { secret: CONTROLLER_SECRET });
  assert.deepEqual((about.json as { readonly managed_users?: object }).managed_users, {
    version: 1,
    protocols: ["vless", "anytls"],
    additional_protocols: ["hysteria2", "tuic"],
  });
});

test("notes and labels are there for who writes some, with the revision like every change", async () => {
  await using core = await ManagedCore.start();
  const made = await core.create("edge", "alice", { note: " call first ", labels: ["Paid", "paid", "x"] });
  await core.create("edge", "bob");
  assert.deepEqual([made.note, made.labels], ["call first", ["Paid", "x"]]);
  const named = async (query: string) =>
    (await core.ask("GET", `/api/admin/users${query}`)).json.users.map(({ name }) => name);
  assert.deepEqual(await named("?label=PAID"), ["alice"]);
  assert.deepEqual(await named("?label=none"), []);
  assert.deepEqual(await named("?label="), ["alice", "bob"]);
  const put = async (body: object, revision?: number) =>
    core.ask("PUT", `/api/admin/users/${made.id}`, {
      body: { ...body, revision: revision ?? (await core.revision("edge")) },
    });
  assert.equal((await put({ note: "late" }, 1)).status, 409);
  assert.equal((await put({ labels: "paid" })).status, 400);
  assert.match((await put({ labels: ["a,b"] })).json.message, /^labels: .*comma/);
  assert.match((await put({ note: "x".repeat(5000) })).json.message, /^note: .*4096/);
  const kept = await put({ name: "alice b." });
  assert.deepEqual([kept.json.note, kept.json.labels], ["call first", ["Paid", "x"]]);
  const emptied = await put({ note: "", labels: [] });
  assert.ok(!("note" in emptied.json) && !("labels" in emptied.json));
});

test("svc-admin-api §15.3 §15.4 a subscription serves one link, and nothing to a client without the right to it", async () => {
  const dave = await core.create("side", "dave", { password: "p@ss word/1:2?" });
  const path = (url: string) => new URL(url).pathname;
  const old = path(dave.subscription_url);
  const port = await core.core.port("side");
  const link = `anytls://p%40ss%20word%2F1%3A2%3F@proxy.example.com:${port}?security=tls&sni=proxy.example.com&type=tcp#side%20-%20dave`;
  const served = await core.ask("GET", old, { secret: null });
  assert.equal(served.status, 200);
  if (isFleet) assert.equal(Buffer.from(served.text, "base64").toString().split("\n").length, 2); // a link a node
  else assert.equal(served.text, Buffer.from(link).toString("base64"));
  assert.equal(served.headers.get("content-type"), "text/plain; charset=utf-8");
  assert.equal(served.headers.get("cache-control"), "no-store");
  const head = await core.ask("HEAD", old, { secret: null });
  assert.deepEqual([head.status, head.text], [200, ""]);
  assert.equal(head.headers.get("content-length"), `${served.text.length}`);

  const rotated = await core.change("side", "POST", `/${dave["id"]}/rotate-subscription`);
  const fresh = path(rotated.subscription_url);
  const statusOf = async (at: string) => (await core.ask("GET", at, { secret: null })).status;
  assert.deepEqual([await statusOf(old), await statusOf(fresh)], [404, 200]);
  assert.equal((await core.user(dave.id)).password, "p@ss word/1:2?");
  await core.change("side", "PUT", `/${dave["id"]}`, { enabled: false });
  assert.equal(await statusOf(fresh), 404);
  assert.equal((await core.user(dave.id)).subscription_url, undefined);
  const quiet = await core.change("side", "POST", `/${dave["id"]}/rotate-subscription`);
  assert.equal(quiet.subscription_url, "");
  await core.change("side", "PUT", `/${dave["id"]}`, { enabled: true });
  const last = path((await core.user(dave.id)).subscription_url);
  assert.notEqual(last, fresh); // it was rotated meanwhile
  assert.equal(await statusOf(last), 200);
  await core.change("side", "PUT", `/${dave["id"]}`, { enabled: false });
  await core.change("side", "PUT", `/${dave["id"]}`, { enabled: true });
  assert.equal(path((await core.user(dave.id)).subscription_url), last);
  await core.change("side", "DELETE", `/${dave["id"]}`);
  const gone = await core.ask("GET", last, { secret: null });
  assert.equal(gone.status, 404);
  assert.equal(gone.headers.get("cache-control"), "no-store");
  assert.equal(await statusOf("/sub/svc/x"), 404);
});

test("svc-admin-api §15.2 64 clients with one revision: one wins, again and again, and the history is one line", async () => {
  const history: { readonly sent: number; readonly got: number }[] = [];
  const before = (await core.ask("GET", "/api/admin/users?inbound=edge")).json.users.length;
  for (let round = 0; round < 8; round++) {
    const sent = await core.revision("edge");
    const answers = await Promise.all(
      Array.from({ length: 64 }, (_, at) =>
        core.ask("POST", "/api/admin/users", {
          body: { inbound: "edge", name: `racer ${round} ${at}`, revision: sent },
        }),
      ),
    );
    const won = answers.filter(({ status }) => status === 201);
    assert.equal(won.length, 1);
    assert.equal(answers.filter(({ status }) => status === 409).length, 63);
    history.push({ sent, got: won[0]?.json.revision ?? 0 });
  }
  for (const [at, { sent, got }] of history.entries()) {
    assert.ok(got > sent);
    if (at > 0) assert.equal(sent, history[at - 1]?.got);
  }
  assert.equal((await core.ask("GET", "/api/admin/users?inbound=edge")).json.users.length, before + 8);
});

test("writers that read again after each 409 all get through, each on what it had read", async () => {
  const wins: { readonly sent: number; readonly got: number }[] = [];
  const writer = async (name: string): Promise<void> => {
    for (;;) {
      const revision = await core.revision("side");
      const said = await core.ask("POST", "/api/admin/users", { body: { inbound: "side", name, revision } });
      if (said.status === 409) continue;
      assert.equal(said.status, 201);
      wins.push({ sent: revision, got: said.json.revision });
      return;
    }
  };
  const first = await core.revision("side");
  await Promise.all(Array.from({ length: 16 }, (_, at) => writer(`writer ${at}`)));
  wins.sort((a, b) => a.got - b.got);
  assert.deepEqual(
    wins.map(({ sent }) => sent),
    [first, ...wins.slice(0, -1).map(({ got }) => got)],
  );
});

test("the Unix socket has the admin routes; a port that other machines reach has only subscriptions", async () => {
  const socketPath = join(core.core.home, "api.sock");
  assert.equal(await rawStatus({ socketPath }, {}), 200);
  assert.equal(
    await rawStatus({ socketPath }, { host: "weir", origin: "https://weir", "x-forwarded-proto": "https" }),
    200,
  );
  await using open = await ManagedCore.start({ controller: "0.0.0.0:0" });
  const { status, headers } = await open.ask("GET", "/api/admin/overview");
  assert.deepEqual([status, headers.get("content-type")], [404, "text/plain; charset=utf-8"]);
  assert.equal(await rawStatus({ socketPath: join(open.core.home, "api.sock") }, {}), 200);
});

test("without a public base URL no user has a link", async () => {
  await using plain = await ManagedCore.start({ baseUrl: "" });
  const user = await plain.create("edge", "alice");
  assert.equal("subscription_url" in user, false);
  const rotated = await plain.change("edge", "POST", `/${user["id"]}/rotate-subscription`);
  assert.equal(rotated.subscription_url, "");
});

test("svc-admin-api §15.10 what was answered is there after kill -9, and after a listener was unmanaged and managed again", async () => {
  using state = stateFolder();
  const options = { store: state.store, folder: state.path };
  const created: string[] = [];
  let alice: AnyJson;
  {
    await using first = await ManagedCore.start(options);
    alice = await first.create("edge", "alice");
    for (let at = 0; at < 20; at++) created.push((await first.create("edge", `user ${at}`)).id);
    await first.core.stop("SIGKILL");
  }
  await using second = await ManagedCore.start(options);
  const { json } = await second.ask("GET", "/api/admin/users?inbound=edge");
  const ids = new Set(json.users.map(({ id }) => id));
  assert.ok(created.every((id) => ids.has(id)) && ids.size === 21);
  const token = new URL(alice.subscription_url).pathname;
  const reload = async (managed: readonly string[]): Promise<void> => {
    second.core.write(
      second.configText.replace(/managed-listeners: .*/, `managed-listeners: [${managed.join(", ")}]`),
    );
    const said = await second.ask("PUT", "/configs", { body: { path: "" }, secret: CONTROLLER_SECRET });
    assert.equal(said.status, 204, said.text);
  };
  await reload(["side"]);
  const statuses = async () => [
    (await second.ask("GET", `/api/admin/users/${alice["id"]}`)).status,
    (await second.ask("GET", token, { secret: null })).status,
  ];
  assert.deepEqual(await statuses(), [404, 404]);
  await reload(["edge", "side"]);
  assert.deepEqual(await statuses(), [200, 200]);
  assert.equal((await second.user(alice.id)).uuid, alice.uuid);
});

test("svc-admin-api §15.8 a second program on the same state file serves without managed users; the first is untouched", async () => {
  using state = stateFolder();
  const options = { store: state.store, folder: state.path };
  await using first = await ManagedCore.start(options);
  const alice = await first.create("edge", "alice");
  await using second = await ManagedCore.start({ ...options, isWatched: false });
  assert.match(second.core.output(), /in use by another process/);
  assert.equal((await second.ask("GET", "/api/admin/overview")).status, 500);
  await first.change("edge", "PUT", `/${alice["id"]}`, { name: "Alice" });
  await first.core.stop();
  const reloaded = await second.ask("PUT", "/configs", { body: { path: "" }, secret: CONTROLLER_SECRET });
  assert.equal(reloaded.status, 204, reloaded.text);
  assert.equal((await second.user(alice.id)).name, "Alice");
});

test("svc-admin-api §15.6 §15.7 a damaged state file is healed from the backup, an unsafe one is refused", async () => {
  using state = stateFolder();
  const options = { store: state.store, folder: state.path };
  {
    await using first = await ManagedCore.start(options);
    await first.create("edge", "alice");
    assert.equal(await first.core.stop(), 0);
  }
  spawnSync("dd", ["if=/dev/urandom", `of=${state.store}`, "bs=1", "seek=4200", "count=64", "conv=notrunc"]);
  {
    await using healed = await ManagedCore.start(options);
    assert.match(healed.core.output(), /kept as .*corrupt-\d+, healed from/);
    assert.equal((await healed.ask("GET", "/api/admin/users")).json.users.length, 1);
    await healed.create("edge", "bob");
  }
  spawnSync("chmod", ["644", state.store]);
  await using refusing = await startCore(managedConfig(options), { env: { SAFE_PATHS: state.path } });
  assert.match(refusing.output(), /others can read it/);
});
