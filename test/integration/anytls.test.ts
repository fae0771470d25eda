/** Our client against our server, through real TLS. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { connect as tlsConnect } from "node:tls";
import { DialError } from "#core/errors.ts";
import type { ManagedInbound } from "#core/inbound.ts";
import { anytls } from "#protocols/anytls/index.ts";
import { outboundContract } from "../contract/outbound.ts";
import { makeCertificate } from "../support/certificate.ts";
import { outcome, readAll, roundTrip } from "../support/client.ts";
import { echo, openTcpOrigin, openUdpEcho } from "../support/origin.ts";
import { openClient, openPair, openServer } from "../support/protocol-pair.ts";

const certificate = makeCertificate({ names: ["example.com"] });
const context = () => ({ signal: new AbortController().signal, metadata: null });
const SERVER = {
  users: { ada: "letmein", bob: "other" },
  certificate: certificate.cert,
  "private-key": certificate.key,
};
const CLIENT = { password: "letmein", udp: true, sni: "example.com", fingerprint: certificate.fingerprint };
const NO_HALF_CLOSE = "AnyTLS has none: a FIN ends both directions";

outboundContract("anytls", () => openPair(anytls, SERVER, anytls, CLIENT), {
  udp: true,
  skip: { "client half-close": NO_HALF_CLOSE, "origin half-close": NO_HALF_CLOSE },
});

describe("anytls", () => {
  test("16 MiB both ways", async () => {
    await using pair = await openPair(anytls, SERVER, anytls, CLIENT);
    await using origin = await openTcpOrigin(echo);
    await roundTrip(await pair.outbound.connect(origin.destination, context()), 16 << 20);
  });

  test("one session serves one connection after the other; another scheme is taken over", async () => {
    const scheme = "stop=2\n0=40-40\n1=50-60";
    await using server = await openServer(anytls, { ...SERVER, "padding-scheme": `${scheme}\n` });
    let connections = 0;
    await using tap = await openTcpOrigin((socket) => {
      connections++;
      void import("node:net").then(({ connect }) => {
        const onward = connect({ port: server.port, host: "127.0.0.1" }).on("error", () => socket.destroy());
        socket.pipe(onward).pipe(socket);
        socket.on("close", () => onward.destroy());
      });
    });
    await using outbound = await openClient(anytls, { ...CLIENT, server: "127.0.0.1", port: tap.port });
    await using origin = await openTcpOrigin(echo);
    for (let round = 0; round < 5; round++)
      await roundTrip(await outbound.connect(origin.destination, context()), 10_000);
    assert.equal(connections, 1);
    assert.equal(server.sessions.length, 5);
  });

  test("a removed user loses the session at once, others keep theirs", async () => {
    await using server = await openServer(anytls, SERVER);
    await using origin = await openTcpOrigin(echo);
    const node = { ...CLIENT, server: "127.0.0.1", port: server.port };
    await using ada = await openClient(anytls, node);
    await using bob = await openClient(anytls, { ...node, password: "other" });
    const [hers, his] = [
      await ada.connect(origin.destination, context()),
      await bob.connect(origin.destination, context()),
    ];
    for (const stream of [hers, his]) {
      stream.write("x");
      await once(stream, "data");
    }
    assert.deepEqual(new Set(server.sessions.map(({ inbound }) => inbound.user)), new Set(["ada", "bob"]));
    const gone = outcome(hers);
    (server.inbound as ManagedInbound).replaceUsers([{ id: "bob", credential: "other", flow: null }]);
    await gone;
    his.write("y");
    await once(his, "data");
    his.destroy();
    const refused = await ada.connect(origin.destination, context());
    await outcome(refused);
    assert.equal(server.sessions.length, 2);
  });

  test("a failed dial is an error with its reason", async () => {
    await using server = await openServer(anytls, SERVER, () => new DialError("refused", "10.0.0.1: secret"));
    await using outbound = await openClient(anytls, { ...CLIENT, server: "127.0.0.1", port: server.port });
    await using origin = await openTcpOrigin(echo);
    const stream = await outbound.connect(origin.destination, context());
    const [error] = (await once(stream, "error")) as [Error];
    assert.match(error.message, /could not dial: refused$/);
  });

  test("an unauthenticated client gets the web server behind, with every byte", async () => {
    await using web = await openTcpOrigin((socket) => {
      socket.once("data", (bytes: Buffer) => socket.end(`web saw ${bytes.length}`));
    });
    await using server = await openServer(anytls, {
      ...SERVER,
      fallbacks: [{ dest: `127.0.0.1:${web.port}` }],
    });
    const probe = tlsConnect({ port: server.port, host: "127.0.0.1", rejectUnauthorized: false });
    const request = "GET / HTTP/1.1\r\nHost: example.com\r\nAccept: */*\r\n\r\n";
    probe.write(request);
    assert.equal((await readAll(probe)).toString(), `web saw ${request.length}`);
    probe.destroy();
    await using plain = await openServer(anytls, SERVER);
    const other = tlsConnect({ port: plain.port, host: "127.0.0.1", rejectUnauthorized: false });
    other.write(randomBytes(64));
    other.on("data", () => assert.fail("answered an unauthenticated client"));
    await outcome(other);
  });

  test("a short request is answered by the web server behind, whatever pieces it comes in", async () => {
    const requests = [
      "GET / HTTP/1.1\r\n\r\n",
      "GET /\r\n",
      "OPTIONS * HTTP/1.0\n\n",
      "PRI * HTTP/2.0\r\n\r\nSM\r\n",
    ];
    const seen: string[] = [];
    await using web = await openTcpOrigin((socket) => {
      let request = "";
      socket.on("data", (bytes: Buffer) => {
        request += bytes.toString("latin1");
        if (!requests.includes(request) && request.length < 32) return;
        seen.push(request);
        socket.end("from the web server");
      });
    });
    const fallbacks = [{ dest: "127.0.0.1:1", path: "/elsewhere" }, { dest: `127.0.0.1:${web.port}` }];
    await using server = await openServer(anytls, { ...SERVER, fallbacks });
    const open = () =>
      tlsConnect({ port: server.port, host: "127.0.0.1", rejectUnauthorized: false }).setNoDelay();
    for (const request of requests)
      for (const piece of [request.length, 1]) {
        const probe = open();
        for (let at = 0; at < request.length; at += piece)
          await new Promise((resolve) => void probe.write(request.slice(at, at + piece), resolve));
        assert.equal((await readAll(probe)).toString(), "from the web server", `${request} by ${piece}`);
        assert.equal(seen.at(-1), request);
        probe.destroy();
      }
    // Bytes are judged as a hash only when all of them are there, and no part of an unknown hash gives it away.
    const before = seen.length;
    for (const bytes of [createHash("sha256").update("letmein").digest().subarray(0, 31), randomBytes(31)]) {
      const probe = open();
      await new Promise((resolve) => void probe.write(bytes, resolve));
      const received = once(probe, "data").then(() => "an answer");
      const last = "\n"; // together with what came before it is no user's hash
      assert.equal(await Promise.race([received, delay(200, "nothing yet")]), "nothing yet");
      probe.write(last);
      assert.equal(await received, "an answer");
      probe.destroy();
    }
    assert.equal(seen.length, before + 2);
  });

  test("datagrams, and the certificate that must fit", async () => {
    await using pair = await openPair(anytls, SERVER, anytls, CLIENT);
    await using origin = await openUdpEcho();
    await using flow = await pair.outbound.associate(origin.destination, context());
    const got = new Promise<{ payload: Uint8Array }>((resolve) => flow.receive(resolve));
    flow.send({ payload: Buffer.from("ping"), destination: origin.destination });
    assert.equal(Buffer.from((await got).payload).toString(), "ping");
    await using wary = await openClient(anytls, {
      password: "letmein",
      server: "127.0.0.1",
      port: pair.server.port,
    });
    await assert.rejects(wary.connect(origin.destination, context()), { name: "DialError" });
  });

  test("without a certificate it wants allow-insecure", async () => {
    await assert.rejects(openServer(anytls, { users: { ada: "a" } }), { name: "ConfigError" });
    await using _server = await openServer(anytls, { users: { ada: "a" }, "allow-insecure": true });
  });
});
