/**
 * The program with four workers: a change holds for the very next connection, whether it asks for what was asked for just
 * before or for something new, and nothing is lost of any.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ANY_V4 } from "#net/address/ip.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { socksConnect } from "../support/socks-client.ts";
import { startCore, type Core } from "../support/start-core.ts";
import { until } from "../support/until.ts";

const skip = process.platform === "linux" ? false : "SKIP changes: needs Linux";

const config = (more: string): string => `
external-controller: 127.0.0.1:0
workers: 4
listeners:
  - { name: in, type: mixed, listen: 127.0.0.1, port: 0 }
proxy-groups:
  - { name: choice, type: select, proxies: [DIRECT, REJECT] }
rules:
  - DOMAIN,unknown.test,REJECT
${more}  - MATCH,choice
`;

async function call<T>(core: Core, method: string, path: string, body?: unknown): Promise<T | null> {
  const url = `http://127.0.0.1:${await core.controllerPort()}${path}`;
  const answer = await fetch(url, { method, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  assert.ok(answer.ok, `${method} ${path}: ${answer.status}`);
  return method === "GET" ? ((await answer.json()) as T) : null;
}

interface Row {
  readonly chains: readonly string[];
  readonly rule: string;
  readonly upload: number;
  readonly download: number;
  readonly metadata: { readonly sourcePort: string; readonly destinationIP: string; readonly type: string };
}

interface Connections {
  readonly connections: readonly Row[] | null;
  readonly uploadTotal: number;
  readonly downloadTotal: number;
}

let last = 0;
/** In turn one that is asked for again and again, and another one each time. */
const anyAddress = (): string =>
  ++last % 2 === 0 ? "127.200.0.9" : `127.${(last >> 8) & 127}.${last & 255}.9`;

async function isServed(port: number, originPort: number): Promise<boolean> {
  const { client, status } = await socksConnect(port, anyAddress(), originPort).catch(() => ({
    client: null,
    status: 1,
  }));
  if (client === null) return false;
  using _client = client;
  if (status !== 0) return false;
  client.send(Buffer.from("ping"));
  return (await client.read(4).catch(() => Buffer.of())).length === 4;
}

/** Eight clients at a time that are served or refused while something else changes; ends with `stop`. */
function keepAsking(port: number, originPort: number): { stop(): Promise<void> } {
  let isOver = false;
  const run = async (): Promise<void> => {
    while (!isOver) await isServed(port, originPort).catch(() => false);
  };
  const all = Array.from({ length: 8 }, run);
  return {
    async stop() {
      isOver = true;
      await Promise.all(all);
    },
  };
}

test(
  "a choice, a mode, a rule and a reload hold for every connection after their answer, under load",
  { skip },
  async () => {
    await using origin = await openTcpOrigin(echo, ANY_V4);
    await using core = await startCore(config(""));
    const port = await core.port("in");
    const load = keepAsking(port, origin.port);
    const check = async (wanted: boolean, what: string): Promise<void> => {
      for (let count = 0; count < 4; count++) assert.equal(await isServed(port, origin.port), wanted, what);
    };
    for (let round = 0; round < 12; round++) {
      await check(true, "at first");
      await call(core, "PUT", "/proxies/choice", { name: "REJECT" });
      await check(false, "the choice is REJECT");
      await call(core, "PATCH", "/configs", { mode: "direct" });
      await check(true, "the mode is direct");
      await call(core, "PATCH", "/configs", { mode: "rule" });
      await check(false, "the mode is rule again");
      await call(core, "PUT", "/proxies/choice", { name: "DIRECT" });
      await check(true, "the choice is DIRECT");
      if (round % 4 > 0) continue;
      await core.reload(config("  - IP-CIDR,127.0.0.0/8,REJECT\n"));
      await check(false, "a rule of the new file");
      await call(core, "PATCH", "/rules/disable", { 1: true });
      await check(true, "the rule is switched off");
      await core.reload(config(""));
    }
    await load.stop();
  },
);

test("connections, totals and counters of rules are exact when they are read", { skip }, async () => {
  await using origin = await openTcpOrigin(echo, ANY_V4);
  await using core = await startCore(config(""));
  const port = await core.port("in");
  const hits = async (): Promise<number> => {
    const all = await call<{ rules: readonly { extra: { hitCount: number } }[] }>(core, "GET", "/rules");
    return all?.rules[1]?.extra.hitCount ?? -1;
  };
  const before = await hits();
  const totals = await call<Connections>(core, "GET", "/connections");
  for (let count = 0; count < 50; count++) assert.ok(await isServed(port, origin.port));
  const address = anyAddress();
  const { client } = await socksConnect(port, address, origin.port);
  using _client = client;
  client.send(Buffer.from("hello"));
  await client.read(5);
  const source = String(client.socket.localPort);
  const row = async () => {
    const shown = await call<Connections>(core, "GET", "/connections");
    return shown?.connections?.find(({ metadata }) => metadata.sourcePort === source);
  };
  const shown = await row();
  assert.deepEqual(shown?.chains, ["DIRECT", "choice"]);
  assert.deepEqual(
    [shown.rule, shown.metadata.destinationIP, shown.metadata.type],
    ["Match", address, "Socks5"],
  );
  // A worker counts what a socket has taken, which a client on the same machine may have read by then.
  await until("its bytes", async () => {
    const now = await row();
    return now?.upload === 5 && now.download === 5;
  });
  await until("51 hits", async () => (await hits()) === before + 51);
  await until("all bytes", async () => {
    const now = await call<Connections>(core, "GET", "/connections");
    return now?.uploadTotal === (totals?.uploadTotal ?? 0) + 205;
  });
});
