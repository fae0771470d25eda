/** DNS over QUIC and over HTTP/3 for clients: the running program, our own upstreams, aioquic, and clients that misbehave. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { SILENT } from "#core/log.ts";
import type { DatagramListener } from "#core/sockets.ts";
import { PerClientLimiter } from "#lib/in-flight.ts";
import { frameOf } from "#dns/frames.ts";
import { decodeMessage, encodeMessage, type Message } from "#dns/message.ts";
import { encodeQuestion } from "#dns/query.ts";
import { openQuicDnsServer, quicDnsAlpn } from "#dns/quic-server.ts";
import type { HandleDns } from "#dns/service.ts";
import { LOOPBACK_V4 } from "#net/address/ip.ts";
import { quicLibrary } from "#platform/quic.ts";
import type { QuicClient } from "#transport/quic/client.ts";
import { PeerClosed } from "#transport/quic/connection-end.ts";
import { makeCertificate } from "../support/certificate.ts";
import { addressesIn, questionOf, TYPE_A } from "../support/dns-client.ts";
import { freePorts } from "../support/free-ports.ts";
import { ask } from "../support/hysteria2-listener.ts";
import { aioquicAbsent, askDoqByAioquic, askHttpByAioquic } from "../support/interop/aioquic.ts";
import { listeningDatagrams } from "../support/listening-datagrams.ts";
import { dialQuic } from "../support/quic-dial.ts";
import { openQuicClientTls, openQuicServerTls, quicCertificate } from "../support/quic-tls.ts";
import { type Core, startCore } from "../support/start-core.ts";
import { until } from "../support/until.ts";
import { address, openTestDns, reply, server } from "./dns-kit.ts";

const SKIP = process.platform === "linux" ? false : "SKIP libssl by FFI: only on Linux";
const QUESTION = questionOf("a.example", TYPE_A, 0);
const PATH = "/dns-query";
const MEDIA_TYPE = "application/dns-message";

const dialDoq = async (port: number, fingerprint = quicCertificate.fingerprint) =>
  dialQuic(port, { openTls: await openQuicClientTls({ alpn: ["doq"], fingerprint }) });

/** Puts bytes onto a stream of their own, ends it, and reads what comes back. */
async function exchange(client: QuicClient, bytes: Uint8Array): Promise<Buffer> {
  const stream = client.connection.open(true);
  assert.ok(stream !== null);
  stream.end(bytes);
  const pieces: Buffer[] = [];
  for await (const piece of stream) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}

const askDoq = async (client: QuicClient, message: Uint8Array = QUESTION): Promise<Message> =>
  decodeMessage((await exchange(client, frameOf(message))).subarray(2));

const configText = (doq: number, h3: number, address = "192.0.2.1") => `
log-level: debug
tls: { certificate: cert.pem, private-key: key.pem }
hosts: { a.example: ${address}, "*.a.example": ${address} }
dns:
  enable: true
  listen-quic: 127.0.0.1:${doq}
  listen-h3: 127.0.0.1:${h3}
  nameserver: ["rcode://refused"]
  default-nameserver: [127.0.0.1]
rules: ["MATCH,DIRECT"]
`;

const writeCertificate = (home: string, { cert, key } = quicCertificate) => {
  writeFileSync(join(home, "cert.pem"), cert);
  writeFileSync(join(home, "key.pem"), key);
};

const start = (doq: number, h3: number): Promise<Core> =>
  startCore(configText(doq, h3), { seed: (home) => writeCertificate(home) });

/** Both protocols on one socket, in this process. */
async function openServer(handle: HandleDns, questions = new PerClientLimiter({ all: 100, ofOne: 100 })) {
  const library = quicLibrary();
  assert.ok(library !== null);
  const { socket, close } = await listeningDatagrams({ ip: LOOPBACK_V4, port: 0 });
  const firstBytes: number[] = [];
  const seen: DatagramListener = {
    local: socket.local,
    closed: socket.closed,
    send: (payload, to) => socket.send(payload, to),
    sendRun: (payloads, size, to) => socket.sendRun(payloads, size, to),
    beforeClose: (on) => socket.beforeClose(on),
    receive: (on) =>
      socket.receive((payload, from, ecn) => {
        firstBytes.push(payload[0] ?? 0);
        on(payload, from, ecn);
      }),
  };
  await openQuicDnsServer({
    tls: {
      open: openQuicServerTls({ alpn: [...quicDnsAlpn.both], isEarly: true }),
      ciphers: library.ciphers,
      [Symbol.dispose]() {},
    },
    questions,
    log: SILENT,
    handle,
    listenUdp: async (on) => (on(seen), [socket.local]),
  });
  return { port: socket.local.port, firstBytes, [Symbol.dispose]: () => close() };
}

/** One address for every name. */
const answered: HandleDns = async (message) => {
  const query = decodeMessage(Buffer.from(message));
  return encodeMessage(reply(query, [address(query.questions[0]?.name ?? "", "192.0.2.1")]));
};

const echo: HandleDns = async (message) => Buffer.from(message);

describe("DNS over QUIC and HTTP/3 for clients", { skip: SKIP }, () => {
  test("our own upstreams ask both, on two ports and on one", async () => {
    const [doq, h3, both] = (await freePorts(3)) as [number, number, number];
    for (const [quic, http] of [
      [doq, h3],
      [both, both],
    ] as const) {
      await using _ = await start(quic, http);
      for (const upstream of [`quic://127.0.0.1:${quic}`, `h3://127.0.0.1:${http}${PATH}`]) {
        const nameserver = [server(`${upstream}#skip-cert-verify=true`)];
        await using dns = await openTestDns({ nameserver });
        const answers = Array.from({ length: 50 }, (_each, at) =>
          dns.handle(questionOf(`n${at}.a.example`), { network: "tcp" }),
        );
        for (const answer of await Promise.all(answers))
          assert.deepEqual(addressesIn(decodeMessage(Buffer.from(answer))), ["192.0.2.1"]);
      }
    }
  });

  test("a reload keeps connections, and another certificate is shown to new ones", async () => {
    const [doq, h3] = (await freePorts(2)) as [number, number];
    await using core = await start(doq, h3);
    const client = await dialDoq(doq);
    assert.deepEqual(addressesIn(await askDoq(client)), ["192.0.2.1"]);
    await core.reload(configText(doq, h3, "192.0.2.7"));
    assert.deepEqual(addressesIn(await askDoq(client)), ["192.0.2.7"]);
    const other = makeCertificate({ names: ["server.test"] });
    writeCertificate(core.home, other);
    await until("the other certificate is shown", async () => {
      const next = await dialDoq(doq, other.fingerprint).catch(() => null);
      next?.close(0);
      return next !== null;
    });
    assert.deepEqual(addressesIn(await askDoq(client)), ["192.0.2.7"]);
    client.close(0);
  });

  test("the first question of an upstream's next connection goes by 0-RTT", async () => {
    for (const scheme of ["quic", "h3"]) {
      using opened = await openServer(answered);
      const upstream = `${scheme}://127.0.0.1:${opened.port}${scheme === "h3" ? PATH : ""}`;
      await using dns = await openTestDns({ nameserver: [server(`${upstream}#skip-cert-verify=true`)] });
      const ask = async (name: string) =>
        addressesIn(decodeMessage(Buffer.from(await dns.handle(questionOf(name), { network: "tcp" }))));
      assert.deepEqual(await ask("one.example"), ["192.0.2.1"]);
      const early = () => opened.firstBytes.filter((byte) => (byte & 0xf0) === 0xd0).length;
      assert.equal(early(), 0);
      dns.networkChanged(); // its connections are given up
      assert.deepEqual(await ask("two.example"), ["192.0.2.1"]);
      assert.ok(early() > 0, scheme);
    }
  });

  test("without a certificate they stay closed, and the file's check says so", async () => {
    const [doq, h3] = (await freePorts(2)) as [number, number];
    const text = configText(doq, h3).replace(/^tls:.*$/m, "");
    await using core = await startCore(text);
    await core.shows(/dns\.listen-quic needs tls\.certificate and tls\.private-key/);
  });

  test("who breaks the protocol of DNS over QUIC loses the connection", async () => {
    using opened = await openServer(echo);
    const withId = Buffer.from(QUESTION);
    withId.writeUInt16BE(1, 0);
    const keepAlive = encodeMessage({
      ...decodeMessage(Buffer.from(QUESTION)),
      additionals: [{ name: "", type: 41, class: 1232, ttl: 0, data: Buffer.from("000b0000", "hex") }],
    });
    const faults: Readonly<Record<string, Uint8Array>> = {
      "an id": frameOf(withId),
      "two messages": Buffer.concat([frameOf(QUESTION), frameOf(QUESTION)]),
      "a message that is cut": frameOf(QUESTION).subarray(0, 20),
      nothing: new Uint8Array(0),
      "less than a length": Buffer.of(0),
      "edns-tcp-keepalive": frameOf(keepAlive),
      "more than a message": Buffer.alloc(70_000),
    };
    for (const [name, bytes] of Object.entries(faults)) {
      const client = await dialDoq(opened.port);
      await assert.rejects(exchange(client, bytes), name);
      const ended = await client.closed;
      assert.ok(ended instanceof PeerClosed && ended.closeCode === 2, name);
    }
    const client = await dialDoq(opened.port);
    client.connection
      .open(false)
      ?.on("error", () => {})
      .end("x");
    const ended = await client.closed;
    assert.ok(ended instanceof PeerClosed && ended.closeCode === 2);
  });

  test("over HTTP/3 what is no question has a status", async () => {
    using opened = await openServer(echo);
    const client = await dialQuic(opened.port);
    const status = async (path: string, options: object = {}) =>
      (await ask(client, path, options)).fields.find(([name]) => name === ":status")?.[1];
    const question = Buffer.from(QUESTION).toString("base64url");
    assert.equal(await status(`${PATH}?dns=${question}`), "200");
    assert.equal(await status(`${PATH}?dns=${question}=`), "400");
    assert.equal(await status(PATH), "400");
    assert.equal(await status("/"), "404");
    assert.equal(await status("//["), "404");
    assert.equal(await status(PATH, { method: "PUT" }), "405");
    assert.equal(await status(PATH, { method: "POST", body: "x" }), "415");
    client.close(0x100);
  });

  test("each address has its share of the questions, by whatever way it asks", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    let begun = 0;
    const handle: HandleDns = async (message) => {
      begun++;
      await promise;
      return Buffer.from(message);
    };
    using opened = await openServer(handle, new PerClientLimiter({ all: 100, ofOne: 2 }));
    const client = await dialDoq(opened.port);
    const waiting = [askDoq(client), askDoq(client)];
    await until("both wait", () => begun === 2);
    await assert.rejects(askDoq(client), /reset/);
    const visitor = await dialQuic(opened.port);
    const question = Buffer.from(QUESTION).toString("base64url");
    assert.deepEqual((await ask(visitor, `${PATH}?dns=${question}`)).fields[0], [":status", "503"]);
    resolve();
    await Promise.all(waiting);
    assert.deepEqual((await ask(visitor, `${PATH}?dns=${question}`)).fields[0], [":status", "200"]);
    client.close(0);
    visitor.close(0x100);
  });

  test(
    "aioquic asks both, and answers are padded for who knows of it",
    { skip: aioquicAbsent() },
    async () => {
      const [doq, h3] = (await freePorts(2)) as [number, number];
      await using _ = await start(doq, h3);
      assert.deepEqual(addressesIn(decodeMessage(await askDoqByAioquic(doq, QUESTION))), ["192.0.2.1"]);
      const opt = { name: "", type: 41, class: 1232, ttl: 0, data: Buffer.alloc(0) };
      const withOpt = encodeMessage({ ...decodeMessage(Buffer.from(QUESTION)), additionals: [opt] });
      const padded = await askDoqByAioquic(doq, withOpt);
      assert.equal(padded.length, 468);
      assert.deepEqual(addressesIn(decodeMessage(padded)), ["192.0.2.1"]);
      const get = await askHttpByAioquic(h3, `${PATH}?dns=${Buffer.from(QUESTION).toString("base64url")}`);
      const post = await askHttpByAioquic(h3, PATH, {
        fields: { "content-type": MEDIA_TYPE },
        body: Buffer.from(encodeQuestion("a.example", TYPE_A)),
      });
      for (const { status, body } of [get, post]) {
        assert.equal(status, "200");
        assert.deepEqual(addressesIn(decodeMessage(body)), ["192.0.2.1"]);
      }
    },
  );
});
