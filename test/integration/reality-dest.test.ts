/** Dest of our REALITY server: how it is reached, what is said of one that is of no use, and who goes on with it. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { REGISTRIES } from "#cli/parse-env.ts";
import { parseConfig } from "#config/parse.ts";
import { SILENT } from "#core/log.ts";
import { DialError } from "#core/errors.ts";
import { directDialer } from "../support/direct-accept.ts";
import {
  helloWithToken,
  listening,
  mldsa65Seed,
  openReality,
  openSite,
  plainHello,
  privateKey,
  readAll,
} from "../support/reality.ts";
import { startCore } from "../support/start-core.ts";
import { until } from "../support/until.ts";

test("dest is reached by the outbound that `proxy` names", async () => {
  await using dest = await openSite();
  const asked: string[] = [];
  const through = (name: string) => ({
    ...directDialer,
    connect: (...args: Parameters<typeof directDialer.connect>) => {
      asked.push(`${name} ${args[1].metadata?.destination.port ?? "itself"}`);
      return directDialer.connect(...args);
    },
  });
  await using server = await openReality({ dest: dest.port, more: { proxy: "far" }, through });
  const visitor = connect({ port: server.port, host: "127.0.0.1", allowHalfOpen: true });
  visitor.end(plainHello());
  assert.equal((await readAll(visitor))[0], 22);
  assert.deepEqual(asked.toSorted(), [`far ${dest.port}`, "far itself"]);
});

test("an outbound that fails costs the client its connection, without a byte", async () => {
  const fail = () => Promise.reject(new DialError("failed", "proxy far not found"));
  const through = () => ({ connect: fail, associate: fail });
  await using server = await openReality({ dest: 1, more: { proxy: "far" }, through });
  const visitor = connect({ port: server.port, host: "127.0.0.1" });
  assert.equal((await readAll(visitor)).length, 0);
  assert.match(server.refused.join(), /proxy far not found/);
});

/** What is warned of when a server with this dest is opened. */
async function warningOf(dest: number, more: object = {}): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const log = { ...SILENT, warning: (text: string | (() => string)) => resolve(String(text)) };
  await using _server = await openReality({ dest, more, log });
  return await promise;
}

test("a dest that is of no use is warned of when the listener opens", { timeout: 60_000 }, async () => {
  await using small = await openSite();
  await using older = await openSite({ maxVersion: "TLSv1.2" });
  await using curve = await openSite({ ecdhCurve: "P-384" });
  await using plain = await listening(createServer((socket) => socket.end("220 hello\r\n")));
  const texts = await Promise.all([
    warningOf(small.port, { "mldsa65-seed": mldsa65Seed }),
    warningOf(older.port),
    warningOf(curve.port),
    warningOf(plain.port),
  ]);
  for (const text of texts)
    assert.match(text, /^listener r: reality-config.dest: 127.0.0.1:\d+: .*no client is let in/);
  assert.match(
    texts[0] ?? "",
    /for site.test in a record of \d{3} bytes, and 3544 are needed.*or no mldsa65-seed/,
  );
  assert.match(texts[1] ?? "", /no handshake of TLS 1.3: .*TLS 1\.3/);
  assert.match(texts[2] ?? "", /must choose X25519 or X25519MLKEM768 at once/);
  assert.match(texts[3] ?? "", /no handshake of TLS 1.3/);
});

/** A dest that says nothing until the test does. */
async function openSilent() {
  const clients: Socket[] = [];
  const server = await listening(
    createServer({ allowHalfOpen: true }, (socket) => clients.push(socket.on("error", () => {}))),
  );
  return { ...server, clients };
}

/** The connection of a client, beside that of the server itself. */
async function second(clients: readonly Socket[]): Promise<Socket> {
  await until("dest was asked in advance", () => clients.length === 1);
  return await new Promise((resolve) => {
    const look = (): void => void (clients[1] === undefined ? setTimeout(look, 5) : resolve(clients[1]));
    look();
  });
}

test("a client with a token that goes before dest has answered is noticed at once", async () => {
  await using dest = await openSilent();
  await using server = await openReality({ dest: dest.port });
  await until("dest was asked in advance", () => dest.clients.length === 1);
  const whole = connect({ port: server.port, host: "127.0.0.1" });
  whole.on("error", () => {}).write(helloWithToken());
  const atDest = await second(dest.clients);
  const [hello] = (await once(atDest, "data")) as [Buffer];
  assert.equal(hello[0], 22);
  whole.end("more");
  const [behind] = (await once(atDest, "data")) as [Buffer];
  assert.equal(String(behind), "more");
  await once(atDest, "end");
  assert.match(server.refused.join(), /was not imitated/);
  atDest.end("dest's own answer");
  assert.equal(String(await readAll(whole)), "dest's own answer");
});

test("one that breaks off, too", async () => {
  await using dest = await openSilent();
  await using server = await openReality({ dest: dest.port });
  await until("dest was asked in advance", () => dest.clients.length === 1);
  const client = connect({ port: server.port, host: "127.0.0.1" });
  client.on("error", () => {}).write(helloWithToken());
  const atDest = await second(dest.clients);
  await once(atDest, "data");
  client.resetAndDestroy();
  await new Promise((resolve) => atDest.once("close", resolve));
});

test("a dest that wants another hello is heard at once", { timeout: 20_000 }, async () => {
  await using dest = await openSite({ ecdhCurve: "P-384" });
  await using server = await openReality({ dest: dest.port });
  const client = connect({ port: server.port, host: "127.0.0.1" });
  client.on("error", () => {}).write(helloWithToken());
  const [answer] = (await once(client, "data")) as [Buffer];
  assert.equal(answer[0], 22);
  client.destroy();
});

test("`proxy` may be a group, whose choice counts for the next connection", async () => {
  await using dest = await openSite();
  await using core = await startCore(`external-controller: 127.0.0.1:0
proxy-groups: [{name: way, type: select, proxies: [REJECT, DIRECT]}]
listeners:
  - name: edge
    type: vless
    listen: 127.0.0.1
    port: 0
    users: [{username: a, uuid: 11111111-1111-4111-8111-111111111111}]
    reality-config: {dest: "127.0.0.1:${dest.port}", server-names: [site.test], private-key: ${privateKey}, proxy: way}
rules: ['MATCH,DIRECT']
`);
  const [port, controller] = [await core.port("edge"), await core.controllerPort()];
  const visit = async (): Promise<number> => {
    const visitor = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    visitor.end(plainHello());
    return (await readAll(visitor).catch(() => Buffer.alloc(0))).length;
  };
  assert.equal(await visit(), 0);
  const body = JSON.stringify({ name: "DIRECT" });
  const chosen = await fetch(`http://127.0.0.1:${controller}/proxies/way`, { method: "PUT", body });
  assert.equal(chosen.status, 204);
  assert.ok((await visit()) > 500);
});

test("a way to dest that leads nowhere is warned of at its place", () => {
  const text = `listeners:
  - name: a
    type: vless
    port: 1
    users: [{uuid: 11111111-1111-4111-8111-111111111111}]
    reality-config:
      dest: site.test:443
      server-names: [site.test]
      private-key: ${privateKey}
      proxy: DIRCT
`;
  const files = { resolve: (path: string) => path };
  const warningsOf = (source: string) =>
    parseConfig(source, { registries: REGISTRIES, files, userAgent: "test" }).config?.warnings ??
    assert.fail();
  const place = { path: "listeners[0].reality-config.proxy", line: 10, column: 14 };
  const [warning] = warningsOf(text);
  assert.deepEqual({ path: warning?.path, line: warning?.line, column: warning?.column }, place);
  assert.match(warning?.message ?? "", /proxy DIRCT not found; did you mean "DIRECT"/);
  assert.deepEqual(warningsOf(text.replace("DIRCT", "DIRECT")), []);
});
