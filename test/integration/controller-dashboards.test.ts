/** What the two dashboards ask while they load and when their buttons are pressed (controller-api.md §12). */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { WebSocket } from "ws";
import { FULL_SECRET, startFullCore } from "../support/full-core.ts";
import { openTcpOrigin } from "../support/origin.ts";
import { liveController, type LiveController } from "../support/live-controller.ts";

const SECRET = "a secret";
const ORIGIN = { origin: "https://panel.example" };

interface Dashboard {
  readonly name: string;
  /** Headers of every call, given the password that the user typed. */
  headers(password: string): Record<string, string>;
  /** Query of every WebSocket. */
  token(password: string): string;
}

/** Always sends the header and the token, also when they are empty. */
const Z: Dashboard = {
  name: "zashboard",
  headers: (password) => ({
    ...ORIGIN,
    authorization: `Bearer ${password}`,
    "content-type": "application/json",
  }),
  token: (password) => `token=${encodeURIComponent(password)}`,
};
/** Sends them only when there is a password; bodies go out as text. */
const M: Dashboard = {
  name: "metacubexd",
  headers: (password) =>
    password === ""
      ? ORIGIN
      : { ...ORIGIN, authorization: `Bearer ${password}`, "content-type": "text/plain;charset=UTF-8" },
  token: (password) => (password === "" ? "" : `token=${encodeURIComponent(password)}`),
};

/** Every field that one of the two reads (§12), as it has to be: they call methods of texts, iterate lists, draw numbers. */
const text = (value: unknown) => typeof value === "string";
const filled = (value: unknown) => typeof value === "string" && value !== "";
const amount = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0;
const flag = (value: unknown) => typeof value === "boolean";
const texts = (value: unknown) => Array.isArray(value) && value.every(text);
const list = (value: unknown) => Array.isArray(value);
const time = (value: unknown) => text(value) && !Number.isNaN(Date.parse(value as string));
const absent = (value: unknown) => value === undefined;
const digits = (value: unknown) => text(value) && /^\d+$/.test(value as string);
const object = (value: unknown) => typeof value === "object" && value !== null && !Array.isArray(value);
type Fields = Readonly<Record<string, (value: unknown) => boolean>>;

const CONFIG_FIELDS: Fields = {
  mode: filled,
  port: amount,
  "socks-port": amount,
  "redir-port": amount,
  "tproxy-port": amount,
  "mixed-port": amount,
  "allow-lan": flag,
  "bind-address": text,
  "log-level": filled,
  ipv6: flag,
  "unified-delay": flag,
  "interface-name": text,
  "tun.enable": flag,
  "tun.stack": (value) => ["gVisor", "System", "Mixed"].includes(value as string),
  "tun.device": text,
  "tun.auto-route": flag,
  "tun.auto-detect-interface": flag,
};
const PROXY_FIELDS: Fields = {
  name: filled,
  type: filled,
  alive: flag,
  udp: flag,
  xudp: flag,
  tfo: flag,
  history: list,
  extra: object,
  "dialer-proxy": text,
  "provider-name": text,
};
const GROUP_FIELDS: Fields = { all: texts, hidden: flag, icon: text, testUrl: text };
const SAMPLE_FIELDS: Fields = { time, delay: amount };
const PROVIDER_FIELDS: Fields = {
  name: filled,
  type: (value) => value === "Proxy",
  vehicleType: filled,
  proxies: list,
  testUrl: text,
  updatedAt: time,
};
const RULE_FIELDS: Fields = {
  index: amount,
  type: filled,
  payload: text,
  proxy: filled,
  size: (value) => value === -1 || amount(value),
  "extra.disabled": flag,
  "extra.hitCount": amount,
  "extra.hitAt": time,
  "extra.missCount": amount,
  "extra.missAt": time,
  uuid: absent, // it would select another core's form of disabling
};
const RULE_PROVIDER_FIELDS: Fields = {
  name: filled,
  behavior: filled,
  format: text,
  ruleCount: amount,
  updatedAt: time,
  vehicleType: filled,
};
const CONNECTION_FIELDS: Fields = {
  id: filled,
  upload: amount,
  download: amount,
  start: time,
  chains: (value) => texts(value) && (value as []).length > 0,
  rule: text,
  rulePayload: text,
  "metadata.network": (value) => value === "tcp" || value === "udp",
  "metadata.type": filled,
  "metadata.host": text,
  "metadata.sniffHost": text,
  "metadata.destinationIP": text,
  "metadata.destinationPort": digits,
  "metadata.remoteDestination": text,
  "metadata.sourceIP": filled,
  "metadata.sourcePort": digits,
  "metadata.process": text,
  "metadata.processPath": text,
  "metadata.inboundName": filled,
  "metadata.inboundUser": text,
  "metadata.inboundPort": digits,
  "metadata.inboundIP": text,
  "metadata.dnsMode": filled,
  "metadata.specialProxy": text,
  "metadata.specialRules": text,
  "metadata.uid": amount,
};

function expectFields(value: unknown, fields: Fields, what: string): void {
  for (const [path, is] of Object.entries(fields)) {
    const found = path.split(".").reduce<unknown>((at, key) => (at as Record<string, unknown>)?.[key], value);
    assert.ok(is(found), `${what}: ${path} is ${JSON.stringify(found)}`);
  }
}

const LOADED = ["/version", "/configs", "/proxies", "/providers/proxies", "/rules", "/providers/rules"];
const STREAMED = ["/connections", "/logs", "/memory", "/traffic"];

function caller({ url }: LiveController, dashboard: Dashboard, password: string) {
  return async (method: string, path: string, body?: unknown) => {
    const text = body === undefined ? {} : { body: JSON.stringify(body) };
    const answer = await fetch(`${url}${path}`, { method, headers: dashboard.headers(password), ...text });
    assert.equal(answer.headers.get("access-control-allow-origin"), "*", `${method} ${path}`);
    return answer;
  };
}

async function opens({ port }: LiveController, path: string, token: string): Promise<boolean> {
  const query = path === "/logs" ? `level=info&${token}` : token;
  const socket = new WebSocket(`ws://127.0.0.1:${port}${path}?${query}`, { headers: ORIGIN });
  socket.on("error", () => {}); // a refusal, told by the promise below
  const opened = once(socket, "open").then(
    () => true,
    () => false,
  );
  return opened.finally(() => socket.terminate());
}

for (const dashboard of [Z, M]) {
  for (const [secret, password, isRight] of [
    ["", "", true],
    ["", "typed for nothing", true],
    [SECRET, SECRET, true],
    [SECRET, "wrong", false],
    [SECRET, "", false],
  ] as const) {
    test(`controller-api.md §15.1 ${dashboard.name} loads with secret ${JSON.stringify(secret)} and password ${JSON.stringify(password)}`, async () => {
      await using live = await liveController({ secret });
      const call = caller(live, dashboard, password);
      for (const path of [...LOADED, "/storage/zashboard"]) {
        const answer = await call("GET", path);
        assert.equal(answer.status, isRight ? 200 : 401, path);
        assert.match(answer.headers.get("content-type") ?? "", /^application\/json/);
        await answer.arrayBuffer();
      }
      for (const path of STREAMED)
        assert.equal(await opens(live, path, dashboard.token(password)), isRight, path);
    });
  }

  test(`${dashboard.name}: every button`, async () => {
    await using live = await liveController({ secret: SECRET });
    const call = caller(live, dashboard, SECRET);
    const session = live.control.connect("a.example");
    live.control.connect("b.example");
    const buttons: readonly (readonly [method: string, path: string, body: unknown, status: number])[] = [
      ["PUT", "/proxies/Proxy", { name: "Node 2" }, 204],
      ["PUT", "/proxies/Auto", { name: "Node 2" }, 204],
      ["DELETE", "/proxies/Auto", undefined, 204],
      [
        "GET",
        "/proxies/Node%201/delay?url=https%3A%2F%2Fwww.gstatic.com%2Fgenerate_204&timeout=5000",
        undefined,
        200,
      ],
      ["GET", "/providers/proxies/remote%2F1/Node%201/healthcheck?url=x&timeout=2000", undefined, 200],
      ["GET", "/group/Auto/delay?url=x&timeout=5000", undefined, 200],
      ["GET", "/providers/proxies/remote%2F1/healthcheck", undefined, 204],
      ["PUT", "/providers/proxies/remote%2F1", undefined, 204],
      ["PATCH", "/rules/disable", { "0": true }, 204],
      ["PATCH", "/configs", { mode: "global" }, 204],
      ["PATCH", "/configs", { "allow-lan": true }, 204],
      ...["port", "socks-port", "redir-port", "tproxy-port", "mixed-port"].map(
        (port, at) => ["PATCH", "/configs", { [port]: 7891 + at }, 204] as const,
      ),
      ["PATCH", "/configs", { "interface-name": "eth0" }, 204],
      ["PATCH", "/configs", { dns: { enable: true } }, 204],
      ["PATCH", "/configs", { tun: { device: "weir0" } }, 204],
      ["PATCH", "/configs", { tun: { enable: false } }, 204],
      ["PATCH", "/configs", { tun: { stack: "Mixed" } }, 204],
      ["PATCH", "/configs", { "unified-delay": true }, 204],
      ["PUT", "/configs?reload=true", { path: "", payload: "" }, 204],
      ["PUT", "/configs?force=true", { path: "", payload: "MATCH,,DIRECT" }, 204],
      ["PUT", "/configs?force=true", { path: "/outside/config.yaml", payload: "" }, 400],
      ["POST", "/configs/geo", undefined, 204],
      ["PUT", "/providers/rules/ads", undefined, 503], // the one of the core in memory never loads
      ["POST", "/upgrade", undefined, 500], // there is no other build
      ["POST", "/upgrade?channel=release", undefined, 500],
      ["POST", "/upgrade?channel=alpha", undefined, 500],
      ["POST", "/upgrade/ui", undefined, 500],
      ["POST", "/cache/fakeip/flush", undefined, 204],
      ["POST", "/cache/dns/flush", undefined, 204],
      ...["A", "AAAA", "MX", "PTR", "TXT", "NS", "CNAME", "HTTPS"].map(
        (type) => ["GET", `/dns/query?name=example.com&type=${type}`, undefined, 200] as const,
      ),
      ["POST", "/restart", undefined, 200],
      ["DELETE", `/connections/${session.metadata.id}`, undefined, 204],
      ["DELETE", "/connections/unknown", undefined, 204],
      ["DELETE", "/connections", undefined, 204],
      ["PUT", "/storage/zashboard", { "config/x": "1" }, 204],
      ["GET", "/storage/zashboard", undefined, 200],
      ["DELETE", "/storage/zashboard", undefined, 204],
      ["GET", "/api/control/info", undefined, 404],
    ];
    for (const [method, path, body, status] of buttons) {
      const answer = await call(method, path, body);
      assert.equal(answer.status, status, `${method} ${path}: ${await answer.text()}`);
    }
    const { tun, mixedPort, tproxyPort, interfaceName, unifiedDelay } = live.control.settings;
    assert.deepEqual([tun.enable, tun.stack, tun.device], [false, "Mixed", "weir0"]);
    assert.deepEqual([mixedPort, tproxyPort, interfaceName, unifiedDelay], [7895, 7894, "eth0", true]);
    assert.equal(live.control.live.size, 0);
    assert.deepEqual(live.control.restarts, ["restart"]);
  });
}

test("every field that a dashboard reads is there and of its kind, in the real program", async () => {
  await using origin = await openTcpOrigin(() => {});
  await using full = await startFullCore(origin.port);
  const headers = M.headers(FULL_SECRET);
  const get = async <T>(path: string): Promise<T> => {
    const answer = await fetch(full.base + path, { headers });
    assert.equal(answer.status, 200, path);
    return (await answer.json()) as T;
  };
  const url = encodeURIComponent(`${full.base}/ui/`);
  await get(`/group/Auto/delay?timeout=5000&url=${url}`);
  await get(`/proxies/DIRECT/delay?timeout=5000&url=${url}`);
  const tunnel = connect(full.mixed, "127.0.0.1");
  tunnel.write(`CONNECT www.test:${origin.port} HTTP/1.1\r\nHost: www.test\r\n\r\n`);
  await once(tunnel, "data");

  expectFields(await get("/version"), { meta: (value) => value === true, version: filled }, "version");
  const { version } = await get<{ version: string }>("/version");
  assert.doesNotMatch(version, /sing-box|honk/);
  expectFields(await get("/configs"), CONFIG_FIELDS, "configs");

  type Proxy = {
    name: string;
    type: string;
    all?: string[];
    history: unknown[];
    extra: Record<string, { history: unknown[] }>;
  };
  const { proxies } = await get<{ proxies: Record<string, Proxy> }>("/proxies");
  for (const [name, proxy] of Object.entries(proxies)) {
    assert.equal(proxy.name, name);
    expectFields(
      proxy,
      proxy.all === undefined ? { ...PROXY_FIELDS, id: text } : { ...PROXY_FIELDS, ...GROUP_FIELDS },
      name,
    );
    if (["Selector", "URLTest", "Fallback"].includes(proxy.type)) expectFields(proxy, { now: filled }, name);
    if (["URLTest", "Fallback"].includes(proxy.type)) expectFields(proxy, { fixed: text }, name);
    for (const sample of proxy.history) expectFields(sample, SAMPLE_FIELDS, name);
    for (const { history } of Object.values(proxy.extra))
      for (const sample of history) expectFields(sample, SAMPLE_FIELDS, name);
  }
  const groups = Object.values(proxies).filter(({ all }) => all !== undefined);
  assert.deepEqual(
    groups
      .map(({ name }) => name)
      .filter((name) => name !== "GLOBAL" && !proxies["GLOBAL"]?.all?.includes(name)),
    [],
    "GLOBAL gives the order of the groups",
  );
  assert.ok((proxies["DIRECT"]?.history.length ?? 0) > 0 && proxies["PASS"] !== undefined);

  type Provider = { name: string; vehicleType: string; proxies: Proxy[] };
  const { providers } = await get<{ providers: Record<string, Provider> }>("/providers/proxies");
  for (const [name, provider] of Object.entries(providers)) {
    expectFields(provider, PROVIDER_FIELDS, name);
    for (const proxy of provider.proxies) expectFields(proxy, PROXY_FIELDS, `${name}: ${proxy.name}`);
  }
  assert.ok("default" in providers && providers["remote/1"]?.vehicleType === "Inline");
  const { rules } = await get<{ rules: unknown[] }>("/rules");
  for (const [at, rule] of rules.entries())
    expectFields(rule, { ...RULE_FIELDS, index: (value) => value === at }, `rule ${at}`);
  assert.ok(rules.length > 3);
  const lists = await get<{ providers: Record<string, unknown> }>("/providers/rules");
  for (const [name, provider] of Object.entries(lists.providers))
    expectFields(provider, RULE_PROVIDER_FIELDS, name);
  assert.ok("ads" in lists.providers);

  const socket = (path: string): Promise<unknown> => {
    const opened = new WebSocket(`ws://127.0.0.1:${full.controller}${path}${Z.token(FULL_SECRET)}`);
    return once(opened, "message").then(([frame]) => {
      opened.terminate();
      return JSON.parse((frame as Buffer).toString()) as unknown;
    });
  };
  const snapshot = (await socket("/connections?")) as { connections: unknown[] };
  expectFields(
    snapshot,
    { downloadTotal: amount, uploadTotal: amount, memory: amount, connections: list },
    "connections",
  );
  assert.equal(snapshot.connections.length, 1);
  expectFields(snapshot.connections[0], CONNECTION_FIELDS, "connection");
  const [traffic, memory] = await Promise.all([socket("/traffic?"), socket("/memory?")]);
  expectFields(traffic, { up: amount, down: amount, upTotal: amount, downTotal: amount }, "traffic");
  expectFields(memory, { inuse: (value) => value === 0, oslimit: amount }, "memory");
  const line = socket("/logs?level=debug&");
  const noisy = setInterval(() => {
    const other = connect(full.mixed, "127.0.0.1");
    other.on("error", () => {}); // cut on purpose
    other.on("data", () => other.destroy());
    other.write(`CONNECT y.test:${origin.port} HTTP/1.1\r\nHost: y.test\r\n\r\n`);
  }, 50);
  expectFields(await line, { type: filled, payload: filled }, "log");
  clearInterval(noisy);
  assert.equal((await fetch(`${full.base}/api/control/info`, { headers })).status, 404);
  tunnel.destroy();
});
