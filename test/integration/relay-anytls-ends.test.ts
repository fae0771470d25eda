/** AnyTLS streams that workers have when something ends them, or holds them back, from outside. */
import assert from "node:assert/strict";
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { once } from "node:events";
import { test } from "node:test";
import type { Worker } from "node:worker_threads";
import type { ManagedInbound } from "#core/inbound.ts";
import type { Dialer } from "#core/outbound.ts";
import { openWorkerBackend } from "#dataplane/workers/main/worker-backend.ts";
import { anytls } from "#protocols/anytls/index.ts";
import * as wire from "#protocols/anytls/wire.ts";
import type { RelayBackend } from "#dataplane/backend.ts";
import { BULK_BYTES, openBulk, openFrameClient, openSessions, pingPong } from "../support/anytls-sessions.ts";
import { openThreads } from "../support/carriers.ts";
import { makeCertificate } from "../support/certificate.ts";
import { echoed, outcome } from "../support/client.ts";
import { directDialer } from "../support/direct-accept.ts";
import { openEchoes } from "../support/connections.ts";
import { openListenerTls } from "../support/listener-tls.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { openClient, openServer } from "../support/protocol-pair.ts";
import { holdingMeter, Returning } from "../support/returning.ts";
import { nativeTls as native } from "../support/native-tls.ts";
import { openRelayed } from "../support/relayed.ts";
import { tlsLibrary } from "../support/tls.ts";
import { openTlsOrigin } from "../support/tls-origin.ts";
import { until } from "../support/until.ts";

const engine = native === null ? null : await openThreads(1);
const tls = await openListenerTls(native);

test(
  "a piece that is held while its stream comes back is paid for once",
  { skip: engine === null },
  async () => {
    const bytes = randomBytes(1 << 20);
    await using origin = await openTcpOrigin((socket) => {
      socket.write(bytes);
      socket.resume();
    });
    const { meter, paid, cancelled } = holdingMeter(50_000, (pieces) => (pieces < 10 ? 0 : 30));
    const backend = new Returning(engine as RelayBackend);
    await using server = await openSessions(tls, { backend, meter });
    const client = await openFrameClient(server.port);
    client.open(1, origin.port);
    await client.expect(wire.SYNACK, 1);
    await client.untilGot(1, BULK_BYTES);
    while (cancelled() === 0) await pingPong(client);
    assert.ok((await client.untilGot(1, bytes.length)).equals(bytes));
    client.send(wire.encodeFrame(wire.FIN, 1));
    await server.untilSettled(1);
    assert.deepEqual(paid, { upload: 0, download: bytes.length });
    assert.deepEqual(server.bytes, paid);
    client.socket.destroy();
  },
);

test(
  "a removed user loses streams that workers have, others keep theirs",
  {
    skip: engine === null,
  },
  async () => {
    const certificate = makeCertificate({ names: ["example.com"] });
    const backend = new Returning(engine as RelayBackend);
    const options = {
      users: { ada: "letmein", bob: "other" },
      certificate: certificate.cert,
      "private-key": certificate.key,
    };
    await using server = await openServer(anytls, options, undefined, backend);
    await using origin = await openTcpOrigin(echo);
    const open = (password: string) =>
      openClient(anytls, {
        password,
        server: "127.0.0.1",
        port: server.port,
        sni: "example.com",
        fingerprint: certificate.fingerprint,
      });
    await using ada = await open("letmein");
    await using bob = await open("other");
    const context = { signal: new AbortController().signal, metadata: null };
    const hers = await ada.connect(origin.destination, context);
    const his = await bob.connect(origin.destination, context);
    await Promise.all([hers, his].map((stream) => echoed(stream, BULK_BYTES)));
    assert.equal(backend.taken, 2);
    const gone = outcome(hers);
    (server.inbound as ManagedInbound).replaceUsers([{ id: "bob", credential: "other", flow: null }]);
    await gone;
    await echoed(his, BULK_BYTES);
    his.destroy();
    await echoed(await bob.connect(origin.destination, context), BULK_BYTES);
    await outcome(await ada.connect(origin.destination, context));
    assert.equal(server.sessions.length, 3);
  },
);

test("a thread that dies takes the session along", { skip: native === null }, async () => {
  const workers: Worker[] = [];
  const note = (worker: Worker): void => void workers.push(worker);
  process.on("worker", note);
  await using own = await openWorkerBackend({ tlsLibrary, threads: 1, onDeath: () => {} });
  process.off("worker", note);
  await using origin = await openTcpOrigin(echo);
  const backend = new Returning(own);
  await using server = await openSessions(tls, { backend });
  const client = await openFrameClient(server.port);
  await openBulk(client, 1, origin.port);
  assert.equal(backend.taken, 1);
  const closed = outcome(client.socket);
  void workers[0]?.terminate(); // noticed when it wakes up, within seconds
  await closed;
  await server.untilSettled(1);
  const next = await openFrameClient(server.port);
  await openBulk(next, 1, origin.port);
  next.socket.destroy();
});

test(
  "streams in REALITY go to workers on both sides, and their session comes back",
  { skip: engine === null },
  async () => {
    const { d: privateKey, x } = generateKeyPairSync("x25519").privateKey.export({ format: "jwk" });
    await using site = await openTlsOrigin();
    const reality = {
      dest: `127.0.0.1:${site.port}`,
      "private-key": privateKey,
      "short-id": ["01"],
      "server-names": ["server.test"],
    };
    const [near, far] = [0, 0].map(() => new Returning(engine as RelayBackend)) as [Returning, Returning];
    const users = { ada: "letmein" };
    await using server = await openServer(anytls, { users, "reality-config": reality }, undefined, far);
    const keys = { "public-key": x, "short-id": "01" };
    const place = { server: "127.0.0.1", port: server.port, password: "letmein", sni: "server.test" };
    let dials = 0;
    const dialer: Dialer = {
      ...directDialer,
      connect(...to) {
        dials++;
        return directDialer.connect(...to);
      },
    };
    await using node = await openClient(anytls, { ...place, "reality-opts": keys }, { dialer });
    await using origin = await openEchoes();
    await using relayed = await openRelayed(origin.port, {
      backend: near,
      back(socket) {
        socket.destroy();
        return node.connect(origin.destination, { signal: AbortSignal.timeout(20_000), metadata: null });
      },
    });
    for (let round = 1; round <= 3; round++) {
      const client = await relayed.dial();
      await echoed(client, BULK_BYTES);
      await until("both sides have it", async () => {
        await echoed(client, BULK_BYTES); // it leaves while something moves
        return near.taken > near.returned && far.taken > far.returned;
      });
      const ended = once(client, "end");
      if (round === 2) client.end();
      else origin.latest().end();
      await ended;
      client.end();
      await relayed.untilSettled(round);
    }
    assert.deepEqual([near.returned, far.returned], [near.taken, far.taken]);
    assert.equal(server.sessions.length, 3);
    assert.equal(dials, 1);
  },
);
