/** A configuration that the Controller is given is answered once its new lists are there, or take long. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { openTcpOrigin } from "../support/origin.ts";
import { startCore } from "../support/start-core.ts";

const NODES = "proxies: [{name: far, type: direct}]\n";

test("PUT /configs waits for lists that come soon, and not for others", { timeout: 60_000 }, async () => {
  await using origin = await openTcpOrigin((socket) => {
    socket.once("data", (head) => {
      if (String(head).includes("/never")) return;
      const answer = `HTTP/1.1 200 OK\r\nContent-Length: ${NODES.length}\r\n\r\n${NODES}`;
      setTimeout(() => socket.end(answer), 300);
    });
  });
  const text = (path: string) => `
external-controller: 127.0.0.1:0
proxy-providers:
  sub: {type: http, url: "http://127.0.0.1:${origin.port}${path}", path: .${path}, proxy: DIRECT}
proxy-groups:
  - {name: G, type: select, use: [sub]}
rules: ["MATCH,G"]
`;
  await using core = await startCore("external-controller: 127.0.0.1:0\n");
  const at = `http://127.0.0.1:${await core.controllerPort()}`;
  const put = async (path: string) => {
    const answer = await fetch(`${at}/configs`, {
      method: "PUT",
      body: JSON.stringify({ payload: text(path) }),
    });
    const { all } = (await (await fetch(`${at}/proxies/G`)).json()) as { all: readonly string[] };
    return [answer.status, all];
  };
  assert.deepEqual(await put("/soon"), [204, ["far"]]);
  const beganMs = performance.now();
  assert.deepEqual(await put("/never"), [204, ["COMPATIBLE"]]);
  assert.ok(performance.now() - beganMs < 15_000, "a download has 20 s");
});
