/** The program with a node of a provider: who dials it, a worker or by the main thread's plan, shows in nothing. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { call } from "../proofs/changes-hold.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { freePort } from "../support/peer.ts";
import { socksConnect } from "../support/socks-client.ts";
import { startCore, type Core } from "../support/start-core.ts";
import { until } from "../support/until.ts";

const skip = process.platform === "linux" ? false : "SKIP nodes by workers: needs Linux";
const password = Buffer.alloc(16, 7).toString("base64");
const cipher = "2022-blake3-aes-128-gcm";

const SERVER = `
listeners:
  - { name: far, type: shadowsocks, listen: 127.0.0.1, port: 0, cipher: ${cipher}, password: "${password}" }
mode: direct
`;

const clientOf = (processes: string): string => `
external-controller: 127.0.0.1:0
workers: 2
find-process-mode: ${processes}
listeners:
  - { name: in, type: mixed, listen: 127.0.0.1, port: 0 }
proxy-providers:
  some: { type: file, path: some.yaml, health-check: { enable: false } }
proxy-groups:
  - { name: choice, type: select, use: [some], proxies: [DIRECT] }
rules:
  - MATCH,choice
`;

const nodeAt = (port: number, more = ""): string =>
  `proxies: [{ name: node, type: ss, server: 127.0.0.1, port: ${port}, cipher: ${cipher}, password: "${password}"${more} }]`;

interface Row {
  readonly id: string;
  readonly chains: readonly string[];
  readonly upload: number;
  readonly download: number;
  readonly metadata: { readonly host: string; readonly destinationPort: string };
}

async function rows(core: Core): Promise<readonly Row[]> {
  const all = await call<{ connections: readonly Row[] | null }>(core, "GET", "/connections");
  return all?.connections ?? [];
}

const SMUX = ", smux: { enabled: true, protocol: smux, max-connections: 2 }";
const YAMUX = ", smux: { enabled: true, protocol: yamux }";

for (const [processes, more] of [
  ["off", ""],
  ["always", ""],
  ["off", SMUX],
  ["always", SMUX],
  ["always", YAMUX],
] as const)
  test(`through a node, with find-process-mode ${processes}${more}`, { skip }, async () => {
    await using server = await startCore(SERVER);
    await using origin = await openTcpOrigin(echo);
    const serverPort = await server.port("far");
    const seed = (home: string): void => writeFileSync(join(home, "some.yaml"), nodeAt(serverPort, more));
    await using core = await startCore(clientOf(processes), { seed });
    const port = await core.port("in");
    const ask = async () => {
      const { client, status } = await socksConnect(port, "127.0.0.1", origin.port);
      if (status === 0) client.send("ping");
      return { client, status, said: status === 0 ? await client.read(4).then(String, () => "") : "" };
    };
    await call(core, "PUT", "/proxies/choice", { name: "node" });
    for (let count = 0; count < 20; count++) {
      const { client, said } = await ask();
      using _client = client;
      assert.equal(said, "ping");
    }
    await until("they are gone", async () => (await rows(core)).length === 0);
    const { client } = await ask();
    using _client = client;
    const [row] = await rows(core);
    assert.deepEqual(row?.chains, ["node", "choice"]);
    await until("both counts", async () => {
      const [now] = await rows(core);
      return now?.upload === 4 && now.download === 4;
    });
    assert.deepEqual([row?.metadata.host, row?.metadata.destinationPort], ["", `${origin.port}`]);
    await call(core, "DELETE", `/connections/${row?.id}`);
    await assert.rejects(client.read(1), "it is cut off");
    // Another file of the provider holds for the very next connection, and so does another choice.
    const update = async (at: number): Promise<void> => {
      writeFileSync(join(core.home, "some.yaml"), nodeAt(at, more));
      await call(core, "PUT", "/providers/proxies/some");
    };
    await update(await freePort());
    for (let count = 0; count < 4; count++) assert.notEqual((await ask()).status, 0);
    await call(core, "PUT", "/proxies/choice", { name: "DIRECT" });
    assert.equal((await ask()).said, "ping");
    await update(serverPort);
    await call(core, "PUT", "/proxies/choice", { name: "node" });
    for (let count = 0; count < 4; count++) assert.equal((await ask()).said, "ping");
    const open = await rows(core);
    assert.deepEqual(
      new Set(open.map(({ chains }) => chains.join())),
      new Set(["node,choice", "DIRECT,choice"]),
    );
  });

test(
  "a node is asked for what the hosts table has for a name, from the first connection on",
  { skip },
  async () => {
    await using server = await startCore(SERVER);
    await using origin = await openTcpOrigin(echo);
    const serverPort = await server.port("far");
    const seed = (home: string): void => writeFileSync(join(home, "some.yaml"), nodeAt(serverPort));
    await using core = await startCore(
      `${clientOf("off")}hosts: { a.test: 127.0.0.1, b.test: a.test, "*.c.test": 127.0.0.1 }\n`,
      { seed },
    );
    await call(core, "PUT", "/proxies/choice", { name: "node" });
    const port = await core.port("in");
    const some = Array.from({ length: 30 }, (_, at) => `${at}.c.test`);
    for (const name of [...some, "a.test", "b.test", "a.test"]) {
      const { client } = await socksConnect(port, name, origin.port);
      using _client = client;
      client.send("ping");
      assert.equal(String(await client.read(4)), "ping", name);
    }
  },
);

test(
  "a group that measures is followed: its node dies, and connections go by the next",
  { skip },
  async () => {
    await using near = await startCore(SERVER);
    await using far = await startCore(SERVER);
    await using origin = await openTcpOrigin(echo);
    await using site = await openTcpOrigin((socket) =>
      socket.once("data", () => socket.end("HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")),
    );
    const nodes = [near, far].map(async (core, at) =>
      nodeAt(await core.port("far"))
        .slice("proxies: [".length, -1)
        .replace("name: node", `name: node${at}`),
    );
    await using core = await startCore(`
external-controller: 127.0.0.1:0
workers: 2
find-process-mode: "off"
listeners:
  - { name: in, type: mixed, listen: 127.0.0.1, port: 0 }
proxies: [${(await Promise.all(nodes)).join(", ")}]
proxy-groups:
  - { name: choice, type: fallback, proxies: [node0, node1], url: "http://127.0.0.1:${site.port}/", interval: 3600, lazy: false }
rules:
  - MATCH,choice
`);
    const port = await core.port("in");
    const wayOf = async (): Promise<string> => {
      const { client, status } = await socksConnect(port, "127.0.0.1", origin.port).catch(() => ({
        client: null,
        status: 1,
      }));
      using _client = client;
      if (client === null || status !== 0) return "none";
      client.send("ping");
      if ((await client.read(4).catch(() => null)) === null) return "none";
      return (await rows(core)).at(-1)?.chains.join() ?? "none";
    };
    for (let count = 0; count < 8; count++) assert.equal(await wayOf(), "node0,choice");
    await near.stop("SIGKILL");
    await until("the next node", async () => (await wayOf()) === "node1,choice");
    for (let count = 0; count < 8; count++) assert.equal(await wayOf(), "node1,choice");
  },
);
