/** What the two dashboards ask while they load and when their buttons are pressed (controller sheet §12). */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { WebSocket } from "ws";
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
    live.control.connect("a.example");
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
      ["PATCH", "/configs", { "mixed-port": 7891 }, 204],
      ["PATCH", "/configs", { tun: { enable: false } }, 204],
      ["PATCH", "/configs", { tun: { stack: "Mixed" } }, 204],
      ["PATCH", "/configs", { "unified-delay": true }, 204],
      ["PUT", "/configs?reload=true", { path: "", payload: "" }, 204],
      ["PUT", "/configs?force=true", { path: "", payload: "MATCH,,DIRECT" }, 204],
      ["POST", "/configs/geo", undefined, 204],
      ["POST", "/cache/fakeip/flush", undefined, 204],
      ["POST", "/cache/dns/flush", undefined, 204],
      ["GET", "/dns/query?name=example.com&type=AAAA", undefined, 200],
      ["POST", "/restart", undefined, 200],
      ["DELETE", "/connections/nobody", undefined, 204],
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
    assert.deepEqual([live.control.settings.tun.enable, live.control.settings.tun.stack], [false, "Mixed"]);
    assert.equal(live.control.live.size, 0);
    assert.deepEqual(live.control.restarts, ["restart"]);
  });
}
