/** Nodes over TLS whose servers workers dial by themselves: whom they believe, and what becomes of those that they do not. */
import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { makeCertificate } from "../support/certificate.ts";
import { openTcpOrigin } from "../support/origin.ts";
import { socksConnect } from "../support/socks-client.ts";
import { authority, certificate, openTlsOrigin, tlsClient } from "../support/tls-origin.ts";
import { tlsProvider } from "../support/tls.ts";
import { echoBehindRequest, openTrojanEngine, ping } from "../support/trojan-engine.ts";
import { until } from "../support/until.ts";
import { WorkerKiller } from "../support/worker-killer.ts";

const skip = process.platform === "linux" ? false : "SKIP nodes by workers: needs Linux";

const strange = makeCertificate({ names: ["server.test"] });
const expired = makeCertificate({ names: ["server.test"], issuer: authority, validForMs: -1 });
const pin = certificate.fingerprint;
const GOOD: readonly (readonly [what: string, fields: object, options?: object])[] = [
  ["the chain and the name", {}],
  ["another name", { "name-cert-verify": "127.0.0.1" }],
  ["a pinned certificate", { fingerprint: pin }],
  ["whatever is shown", { "skip-cert-verify": true }, { cert: strange.cert, key: strange.key }],
];
/** By the library, and by the engine. */
const WAYS = [{}, { "client-fingerprint": "chrome" }, { "client-fingerprint": "firefox" }];
const named = (way: object): string => Object.values(way).join("") || "the library";

for (const way of WAYS)
  for (const [what, fields, options] of GOOD)
    test(`a server is believed by ${named(way)}: ${what}`, { skip }, async () => {
      await using server = await openTlsOrigin(options);
      await using engine = await openTrojanEngine(
        server.port,
        await tlsClient(tlsProvider, { ...fields, ...way }),
      );
      const accepted = server.accepted();
      const said = ping(engine);
      echoBehindRequest(await accepted);
      assert.equal(await said, "ping");
      await until("it is reported", () => engine.served.length === 1);
      assert.deepEqual([engine.served[0]?.uploadBytes, engine.served[0]?.downloadBytes], [4, 4]);
      assert.equal(engine.handedOver + engine.asked.length, 0);
    });

test("a node shows its own certificate where it is asked for", { skip }, async () => {
  const own = makeCertificate({ names: ["ann.test"] });
  await using server = await openTlsOrigin({ requestCert: true, ca: [own.cert] });
  const fields = { certificate: own.cert, "private-key": own.key };
  await using engine = await openTrojanEngine(server.port, await tlsClient(tlsProvider, fields));
  const accepted = server.accepted();
  const said = ping(engine);
  const socket = await accepted;
  assert.equal(socket.getPeerCertificate().subject.CN, "ann.test");
  echoBehindRequest(socket);
  assert.equal(await said, "ping");
  const asBrowser = await tlsClient(tlsProvider, { ...fields, "client-fingerprint": "chrome" });
  assert.equal(asBrowser.recipe?.() ?? null, null, "the engine's keys are objects of the runtime");
});

const BAD: readonly (readonly [what: string, fields: object, options?: object])[] = [
  ["an authority that is not known", {}, { cert: strange.cert, key: strange.key }],
  ["a certificate that has ended", {}, { cert: expired.cert, key: expired.key }],
  ["another name", { "name-cert-verify": "elsewhere.test" }],
  ["another certificate than the pinned one", { fingerprint: strange.fingerprint }],
  ["one that asks for a certificate that we have not", {}, { requestCert: true, maxVersion: "TLSv1.2" }],
];
for (const way of WAYS)
  for (const [what, fields, options] of BAD)
    test(`nothing is sent by ${named(way)} to a server: ${what}`, { skip }, async () => {
      await using server = await openTlsOrigin(options);
      let received = 0;
      void server
        .accepted()
        .then((socket) => socket.on("data", (chunk: Buffer) => (received += chunk.length)));
      await using engine = await openTrojanEngine(
        server.port,
        await tlsClient(tlsProvider, { ...fields, ...way }),
      );
      await assert.rejects(socksConnect(engine.port, "127.0.0.1", 9));
      await until("the event loop has the client", () => engine.handedOver === 1);
      assert.equal(engine.served.length, 0);
      assert.equal(received, 0);
    });

for (const way of WAYS)
  test(`servers that end, reset, or speak something else, with ${named(way)}`, { skip }, async () => {
    const faults: readonly ((socket: Socket) => void)[] = [
      (socket) => socket.end(),
      (socket) => socket.once("data", () => socket.resetAndDestroy()),
      (socket) => socket.once("data", () => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n")),
    ];
    let fault = faults[0];
    await using server = await openTcpOrigin((socket) => fault?.(socket));
    await using engine = await openTrojanEngine(server.port, await tlsClient(tlsProvider, way));
    for (const [at, one] of faults.entries()) {
      fault = one;
      await assert.rejects(socksConnect(engine.port, "127.0.0.1", 9));
      await until("the event loop has the client", () => engine.handedOver === at + 1);
    }
  });

for (const way of WAYS.slice(0, 2))
  test(
    `each connection goes on with the session of an earlier one, with ${named(way)}`,
    { skip },
    async () => {
      await using server = await openTlsOrigin();
      const reused: boolean[] = [];
      await using engine = await openTrojanEngine(server.port, await tlsClient(tlsProvider, way));
      for (let count = 0; count < 3; count++) {
        const accepted = server.accepted();
        const said = ping(engine);
        const socket = await accepted;
        reused.push(socket.isSessionReused());
        echoBehindRequest(socket);
        await said;
        await until("it is reported", () => engine.served.length === count + 1);
      }
      assert.deepEqual(reused, [false, true, true]);
    },
  );

test("a server of TLS 1.2 is the library's, and none that shows a browser's hello", { skip }, async () => {
  await using server = await openTlsOrigin({ maxVersion: "TLSv1.2" });
  {
    await using engine = await openTrojanEngine(server.port, await tlsClient(tlsProvider, {}));
    const accepted = server.accepted();
    const said = ping(engine);
    echoBehindRequest(await accepted);
    assert.equal(await said, "ping");
  }
  const { origin, open, seen } = await openDam(server.port);
  await using _origin = origin;
  open();
  await using engine = await openTrojanEngine(
    origin.port,
    await tlsClient(tlsProvider, { "client-fingerprint": "chrome" }),
  );
  for (let count = 1; count < 4; count++) {
    await assert.rejects(socksConnect(engine.port, "127.0.0.1", 9));
    await until("the event loop has the client", () => engine.handedOver === count);
  }
  assert.equal(seen.connections, 1);
});

/** How a client fares that is asked for nothing more. */
const fate = (port: number): Promise<string> =>
  socksConnect(port, "127.0.0.1", 9).then(
    () => "served",
    () => "ended",
  );

/** In front of a server, and says nothing of its answers before it is told so. */
async function openDam(port: number) {
  let open: () => void = () => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  const seen = { connections: 0, closed: 0 };
  const origin = await openTcpOrigin((socket) => {
    seen.connections++;
    const far = connect(port, "127.0.0.1").on("error", () => socket.destroy());
    socket.on("end", () => socket.destroy());
    socket.on("close", () => {
      seen.closed++;
      far.destroy();
    });
    socket.pipe(far);
    void opened.then(() => far.pipe(socket));
  });
  return { origin, open, seen };
}

for (const way of WAYS.slice(0, 2))
  test(
    `whatever happens while the server is silent, nothing is left, with ${named(way)}`,
    { skip },
    async () => {
      using killer = new WorkerKiller();
      await using server = await openTlsOrigin();
      const { origin, open, seen } = await openDam(server.port);
      await using _origin = origin;
      await using engine = await openTrojanEngine(origin.port, await tlsClient(tlsProvider, way));
      // Its client goes.
      const gone = connect(engine.port, "127.0.0.1").on("error", () => {});
      gone.write(Buffer.of(5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1, 0, 9));
      await until("it is dialled", () => seen.connections === 1);
      gone.resetAndDestroy();
      await until("the server is left", () => seen.closed === 1);
      // Another version is in force when the handshake is done: the main thread decides.
      const late = fate(engine.port);
      await until("it is dialled", () => seen.connections === 2);
      engine.change([{ is: "never" }]);
      await until("the worker has it", () => engine.dropped.length > 1);
      open();
      assert.equal(await late, "ended");
      assert.equal(engine.asked.length, 1);
      await until("the server is left", () => seen.closed === 2);
      // The worker dies.
      const dam = await openDam(server.port);
      await using _dam = dam.origin;
      await using other = await openTrojanEngine(dam.origin.port, await tlsClient(tlsProvider, way));
      const lost = fate(other.port);
      await until("it is dialled", () => dam.seen.connections === 1);
      await killer.kill("relay");
      assert.equal(await lost, "ended");
      await until("the server is left", () => dam.seen.closed === 1);
      assert.equal(other.deaths, 1);
    },
  );

test("a server that stays silent is left to the event loop", { skip }, async () => {
  await using server = await openTcpOrigin(() => {});
  await using engine = await openTrojanEngine(server.port, await tlsClient(tlsProvider, {}));
  await assert.rejects(socksConnect(engine.port, "127.0.0.1", 9));
  assert.equal(engine.handedOver, 1);
});
