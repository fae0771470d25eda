/** Groups of type relay: real servers of different protocols behind each other, by what each of them is asked for. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { destinationText } from "#core/session.ts";
import { http } from "#protocols/http/index.ts";
import { shadowsocks } from "#protocols/shadowsocks/index.ts";
import { socks } from "#protocols/socks/index.ts";
import { vless } from "#protocols/vless/index.ts";
import { freePorts } from "../support/free-ports.ts";
import { echo, openTcpOrigin, openUdpEcho } from "../support/origin.ts";
import { openServer, type Serving } from "../support/protocol-pair.ts";
import { openRecordingSocks } from "../support/recording-socks.ts";
import { socksAssociate, socksConnect } from "../support/socks-client.ts";
import { startCore } from "../support/start-core.ts";
import { uuid } from "../support/tls-sides.ts";
import { openWebOrigin } from "../support/web-origin.ts";
import { until } from "../support/until.ts";

const SS = { cipher: "aes-128-gcm", password: "a password" };

/** Three servers, and nodes for them: `ss`, `so` and `vl`; `ht` for the one of HTTP, which carries no datagrams. */
async function openNodes() {
  await using undo = new AsyncDisposableStack();
  const ss = undo.use(await openServer(shadowsocks, { ...SS, udp: true }));
  const so = undo.use(await openServer(socks, { udp: true }));
  const vl = undo.use(await openServer(vless, { "allow-insecure": true, users: [{ uuid }] }));
  const ht = undo.use(await openServer(http, {}));
  const lines = `
  - { name: ss, type: ss, server: 127.0.0.1, port: ${ss.port}, cipher: ${SS.cipher}, password: ${SS.password}, udp: true }
  - { name: so, type: socks5, server: 127.0.0.1, port: ${so.port}, udp: true }
  - { name: vl, type: vless, server: 127.0.0.1, port: ${vl.port}, uuid: ${uuid}, udp: true }
  - { name: ht, type: http, server: 127.0.0.1, port: ${ht.port} }`;
  const opened = undo.move();
  return { ss, so, vl, ht, lines, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

/** What a server was asked for, as `tcp 127.0.0.1:1`, and forgets it. */
function asked({ sessions }: Serving): readonly string[] {
  const list = sessions as { length: number } & Serving["sessions"];
  const texts = list.map(({ network, destination }) => `${network} ${destinationText(destination)}`);
  list.length = 0;
  return texts;
}

async function echoes(mixed: number, port: number): Promise<void> {
  const { client, status } = await socksConnect(mixed, "127.0.0.1", port);
  using _client = client;
  assert.equal(status, 0);
  client.send(Buffer.from("through them all"));
  assert.equal((await client.read(16)).toString(), "through them all");
}

test("a relay group leads through its nodes in order, groups and nested chains among them", async () => {
  await using nodes = await openNodes();
  const { ss, so, vl, ht, lines } = nodes;
  await using origin = await openTcpOrigin(echo);
  const [mixed, controller] = (await freePorts(2)) as [number, number];
  await using core = await startCore(`
mixed-port: ${mixed}
external-controller: 127.0.0.1:${controller}
proxies: ${lines}
  - { name: out, type: direct }
  - { name: behind, type: socks5, server: 127.0.0.1, port: ${so.port}, dialer-proxy: ht }
proxy-groups:
  - { name: R, type: select, proxies: [plain, picked, nested, alone, refused, chained, empty] }
  - { name: plain, type: relay, proxies: [ss, DIRECT, so, out, vl] }
  - { name: picked, type: relay, proxies: [so, inner, COMPATIBLE] }
  - { name: inner, type: select, proxies: [vl, ss] }
  - { name: nested, type: relay, proxies: [ht, picked] }
  - { name: alone, type: relay, proxies: [DIRECT, COMPATIBLE] }
  - { name: refused, type: relay, proxies: [ss, REJECT, so] }
  - { name: chained, type: relay, proxies: [vl, behind] }
  - { name: empty, type: relay, proxies: [ss], exclude-filter: ss, empty-fallback: REJECT }
rules: ["MATCH,R"]
`);
  const target = `tcp 127.0.0.1:${origin.port}`;
  const to = ({ port }: Serving) => `tcp 127.0.0.1:${port}`;
  const all = () => [ss, so, vl, ht].map((server) => asked(server).join());
  const choose = async (group: string, name: string) => {
    const body = JSON.stringify({ name });
    const { status } = await fetch(`http://127.0.0.1:${controller}/proxies/${group}`, {
      method: "PUT",
      body,
    });
    assert.equal(status, 204);
  };

  await echoes(mixed, origin.port);
  assert.deepEqual(all(), [to(so), to(vl), target, ""], "ss, then so, then vl");
  await choose("R", "picked");
  await echoes(mixed, origin.port);
  assert.deepEqual(all(), ["", to(vl), target, ""]);
  await choose("inner", "ss");
  await echoes(mixed, origin.port);
  assert.deepEqual(all(), [target, to(ss), "", ""]);
  await choose("R", "nested");
  await echoes(mixed, origin.port);
  assert.deepEqual(all(), [target, to(ss), "", to(so)]);
  await choose("R", "chained");
  await echoes(mixed, origin.port);
  assert.deepEqual(all(), ["", target, to(ht), to(so)], "the dialer-proxy of a node stands before it");
  await choose("R", "alone");
  await echoes(mixed, origin.port);
  assert.deepEqual(all(), ["", "", "", ""]);
  for (const closed of ["refused", "empty"]) {
    await choose("R", closed);
    const { client, status } = await socksConnect(mixed, "127.0.0.1", origin.port);
    client[Symbol.dispose]();
    assert.notEqual(status, 0);
    assert.deepEqual(all(), ["", "", "", ""]);
  }
  assert.equal(await core.stop(), 0);
});

test("a relay group in the Controller: fields, chains of a connection, a delay through all nodes", async () => {
  await using nodes = await openNodes();
  const { ss, so, vl, lines } = nodes;
  await using origin = await openTcpOrigin(echo);
  await using web = await openWebOrigin((_, response) => void response.writeHead(204).end());
  const [mixed, controller] = (await freePorts(2)) as [number, number];
  await using _core = await startCore(`
mixed-port: ${mixed}
external-controller: 127.0.0.1:${controller}
proxies: ${lines}
  - { name: not here, type: hysteria, server: 127.0.0.1, port: 1 }
proxy-groups:
  - { name: R, type: relay, proxies: [ss, G, vl], hidden: true }
  - { name: G, type: select, proxies: [so] }
  - { name: dead, type: relay, proxies: [ss, not here] }
rules: ["MATCH,R"]
`);
  const get = async (path: string) => (await fetch(`http://127.0.0.1:${controller}${path}`)).json();
  const view = (await get("/proxies/R")) as Record<string, unknown>;
  assert.deepEqual(
    [view["type"], view["all"], view["now"], view["hidden"], view["udp"], view["unavailable"]],
    ["Relay", ["ss", "G", "vl"], undefined, true, true, undefined],
  );
  const dead = (await get("/proxies/dead")) as { unavailable?: string };
  assert.match(dead.unavailable ?? "", /not here cannot be dialled/);

  const { client } = await socksConnect(mixed, "127.0.0.1", origin.port);
  using _client = client;
  const { connections } = (await get("/connections")) as { connections: readonly { chains: string[] }[] };
  assert.deepEqual(connections[0]?.chains, ["vl", "so", "G", "ss", "R"]);
  // The first node answers as soon as it is reached; what it was asked for comes to the others behind that.
  await until("the connection at the last node", () => vl.sessions.length > 0);
  for (const server of [ss, so, vl]) asked(server);

  const test = `/proxies/R/delay?timeout=20000&url=${encodeURIComponent(web.url)}`;
  const { delay } = (await get(test)) as { delay?: number };
  assert.ok((delay ?? 0) > 0);
  const target = `tcp ${new URL(web.url).host}`;
  assert.deepEqual([asked(ss).length, asked(so).length, asked(vl)], [1, 1, [target]]);
});

test("datagrams through a relay group: in a stream or as datagrams, or past it where a node carries none", async () => {
  await using nodes = await openNodes();
  const { ss, so, vl, lines } = nodes;
  await using origin = await openUdpEcho();
  await using past = await openRecordingSocks();
  const [mixed, controller] = (await freePorts(2)) as [number, number];
  await using _core = await startCore(`
mixed-port: ${mixed}
external-controller: 127.0.0.1:${controller}
proxies: ${lines}
  - { name: past, type: socks5, server: 127.0.0.1, port: ${past.port}, udp: true }
proxy-groups:
  - { name: R, type: select, proxies: [in-stream, as-datagrams, over-http, closed, closed-before] }
  - { name: in-stream, type: relay, proxies: [ht, so, vl] }
  - { name: as-datagrams, type: relay, proxies: [vl, so, ss] }
  - { name: over-http, type: relay, proxies: [vl, ht, ss] }
  - { name: closed, type: relay, proxies: [ht, no-udp] }
  - { name: closed-before, type: relay, proxies: [no-udp, ss] }
  - { name: no-udp, type: select, proxies: [vl], disable-udp: true }
rules: ["MATCH,R", "MATCH,past"]
`);
  const asks = async (text: string) => {
    using udp = await socksAssociate(mixed);
    udp.send(Buffer.from(text), "127.0.0.1", origin.port);
    assert.equal((await udp.next()).payload.toString(), text);
  };
  const choose = (name: string) =>
    fetch(`http://127.0.0.1:${controller}/proxies/R`, { method: "PUT", body: JSON.stringify({ name }) });
  const target = `udp 127.0.0.1:${origin.port}`;
  await asks("in a stream");
  assert.deepEqual(asked(vl), [target]);
  assert.deepEqual(asked(so), [`tcp 127.0.0.1:${vl.port}`]);
  await choose("as-datagrams");
  await asks("as datagrams");
  assert.deepEqual(asked(ss), [target]);
  assert.ok(asked(so).includes(`udp 127.0.0.1:${ss.port}`));
  for (const group of ["over-http", "closed", "closed-before"]) {
    await choose(group);
    await asks(group);
    assert.equal(past.asked.splice(0).at(-1), target, group);
  }
});
