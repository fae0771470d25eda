/** DNS over QUIC and over HTTP/3 on real sockets, against a server in the same process. */
import assert from "node:assert/strict";
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from "node:http2";
import { once } from "node:events";
import { describe, test } from "node:test";
import { ProtocolError } from "#core/errors.ts";
import type { NameserverOptions } from "#core/dns-options.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import { FrameReader, frameOf } from "#dns/frames.ts";
import { decodeMessage, encodeMessage, type Message } from "#dns/message.ts";
import { encodeQuestion } from "#dns/query.ts";
import { UpstreamPool } from "#dns/upstream/index.ts";
import { encodeFields } from "#transport/http3/qpack.ts";
import { takeHeaders } from "#transport/http3/request.ts";
import { PeerClosed } from "#transport/quic/connection-end.ts";
import type { QuicStream } from "#transport/quic/streams/quic-stream.ts";
import { freePorts } from "../support/free-ports.ts";
import { openQuicServer, type QuicServer, type QuicServerOptions } from "../support/quic-server.ts";
import { quicCertificate } from "../support/quic-tls.ts";
import { until } from "../support/until.ts";
import { address, ENV, HOST, openTestDns, reply, server } from "./dns-kit.ts";

const SKIP = process.platform === "linux" ? false : "SKIP libssl by FFI: only on Linux";
const signal = () => AbortSignal.timeout(6000);
const answerTo = (query: Message) => reply(query, [address(query.questions[0]?.name ?? "", "192.0.2.1")]);

interface DoqServer extends QuicServer {
  readonly asked: Buffer[];
}

/** `answer`: what goes onto the stream of a query; null: nothing, ever. */
async function openDoqServer(
  answer: (query: Message, stream: QuicStream) => Uint8Array | null = (query) =>
    frameOf(encodeMessage(answerTo(query))),
  limits: Pick<QuicServerOptions, "mostStreams"> = {},
): Promise<DoqServer> {
  const asked: Buffer[] = [];
  const onStream = (stream: QuicStream) => {
    stream.on("error", () => {});
    const frames = new FrameReader((frame) => {
      asked.push(Buffer.from(frame));
      const bytes = answer(decodeMessage(frame), stream);
      if (bytes !== null && !stream.destroyed) stream.end(bytes);
    });
    stream.on("data", (chunk: Buffer) => frames.push(chunk));
  };
  return Object.assign(await openQuicServer({ ...limits, alpn: "doq", onStream }), { asked });
}

/** Answers GET requests over HTTP/3 with `status` and what DNS over HTTPS says. */
function openHttp3Server(status = "200", port = 0): Promise<QuicServer> {
  return openQuicServer({
    alpn: "h3",
    port,
    onStream(stream) {
      stream.on("error", () => {});
      if (stream.send === null) return void stream.resume();
      const arrived = new ByteQueue();
      stream.on("data", (chunk: Buffer) => arrived.push(chunk));
      stream.on("end", () => {
        const fields = new Map(takeHeaders(arrived));
        const query = new URL(`https://x${fields.get(":path")}`).searchParams.get("dns") ?? "";
        const body = encodeMessage(answerTo(decodeMessage(Buffer.from(query, "base64url"))));
        const head = encodeFields([[":status", status]]);
        stream.write(Buffer.concat([Buffer.of(1, head.length), head]));
        stream.end(Buffer.concat([Buffer.of(0x40, 0x00, 0x40, body.length), body])); // DATA, in longer numbers than needed
      });
    },
  });
}

function openUpstream(text: string, options: { preferHttp3?: boolean } = {}) {
  const pool = new UpstreamPool({ ...ENV, ...options });
  const upstream = pool.open(server(text), {
    lookup: () => Promise.reject(new Error("only addresses here")),
  });
  const ask = async (name: string, until = signal()) =>
    decodeMessage(await upstream.exchange(encodeQuestion(name, 1), until));
  return {
    ask,
    reset: () => upstream.reset(),
    [Symbol.asyncDispose]: () => pool[Symbol.asyncDispose](),
  };
}

const TRUSTING = "#skip-cert-verify=true";

describe("DNS over QUIC", { skip: SKIP }, () => {
  test("one connection carries many questions: padded, without ids, each stream ended by us", async () => {
    await using peer = await openDoqServer();
    await using upstream = openUpstream(`quic://${HOST}:${peer.port}${TRUSTING}`);
    const names = ["a.org", "b.org", "a-name-that-is-rather-long.example.org"];
    for (const answer of await Promise.all(names.map((name) => upstream.ask(name))))
      assert.equal(answer.answers[0]?.data.join("."), "192.0.2.1");
    await upstream.ask("c.org");
    assert.equal(peer.connections.length, 1);
    assert.deepEqual([...new Set(peer.asked.map(({ length }) => length))], [128]);
    assert.ok(peer.asked.every((query) => query.readUInt16BE(0) === 0));
    await until("no stream is open", () => peer.connections[0]?.bidiStreams === 0);
  });

  test("a connection that the server has closed costs nothing", async () => {
    await using peer = await openDoqServer();
    await using upstream = openUpstream(`quic://${HOST}:${peer.port}${TRUSTING}`);
    await upstream.ask("a.org");
    peer.connections[0]?.close(0, "");
    await upstream.ask("b.org");
    assert.equal(peer.connections.length, 2);
  });

  test("a kept connection whose server is silent is given up for a new one before the question is", async () => {
    await using peer = await openDoqServer();
    await using upstream = openUpstream(`quic://${HOST}:${peer.port}${TRUSTING}`);
    await upstream.ask("a.org");
    peer.isOnline = false;
    const asked = upstream.ask("b.org");
    await until("another connection is dialled", () => peer.ports.size === 2);
    peer.isOnline = true;
    await asked;
  });

  test("a server that allows no further stream is asked by another connection, and the first ends with its last question", async () => {
    const held: (() => void)[] = [];
    const answer = (query: Message, stream: QuicStream) => {
      const bytes = frameOf(encodeMessage(answerTo(query)));
      if (query.questions[0]?.name !== "slow.org") return bytes;
      held.push(() => stream.end(bytes));
      return null;
    };
    await using peer = await openDoqServer(answer, { mostStreams: 1 });
    await using upstream = openUpstream(`quic://${HOST}:${peer.port}${TRUSTING}`);
    const slow = upstream.ask("slow.org");
    await until("the question is there", () => held.length === 1);
    await upstream.ask("a.org", AbortSignal.timeout(5000));
    assert.equal(peer.connections.length, 2);
    held[0]?.();
    await slow;
    await until("the first connection ends", () => peer.ends.length === 1);
  });

  test("a question that is given up resets its stream, and no other", async () => {
    const held: QuicStream[] = [];
    await using peer = await openDoqServer((query, stream) => {
      if (query.questions[0]?.name !== "slow.org") return frameOf(encodeMessage(answerTo(query)));
      held.push(stream);
      return null;
    });
    await using upstream = openUpstream(`quic://${HOST}:${peer.port}${TRUSTING}`);
    const stop = new AbortController();
    const slow = upstream.ask("slow.org", stop.signal);
    await until("the question is there", () => held.length === 1);
    stop.abort(new Error("given up"));
    await assert.rejects(slow, /given up/);
    await upstream.ask("a.org");
    await until("the stream is over", () => held[0]?.destroyed === true);
    assert.equal(peer.connections.length, 1);
  });

  test("an answer with an id, and one that is cut short, are errors that end the connection", async () => {
    const answers = [
      (query: Message) => frameOf(encodeMessage({ ...answerTo(query), id: 7 })),
      (query: Message) => frameOf(encodeMessage(answerTo(query))).subarray(0, 20),
      () => new Uint8Array(0),
    ];
    for (const answer of answers) {
      await using peer = await openDoqServer(answer);
      await using upstream = openUpstream(`quic://${HOST}:${peer.port}${TRUSTING}`);
      await assert.rejects(upstream.ask("a.org"), ProtocolError);
      await until("the end", () => peer.ends.length === 1);
      const [end] = peer.ends;
      assert.ok(end instanceof PeerClosed && end.isApplication && end.closeCode === 2, String(end));
    }
  });

  test("the name of the entry is what the certificate must be for", async () => {
    await using peer = await openDoqServer();
    await using unknown = openUpstream(`quic://${HOST}:${peer.port}`);
    await assert.rejects(unknown.ask("a.org"), /quic:\/\/127\.0\.0\.1:.*certificate/);
    const trust = {
      ...ENV.trust,
      context: () => assert.fail("node:tls is not asked"),
      authorities: () => [quicCertificate.cert],
    };
    const pool = new UpstreamPool({ ...ENV, trust });
    const entry: NameserverOptions = server(`quic://${HOST}:${peer.port}`);
    const none = { lookup: () => Promise.reject(new Error("only addresses here")) };
    const wrong = pool.open(entry, none);
    const right = pool.open({ ...entry, nameCertVerify: "server.test" }, none);
    await assert.rejects(wrong.exchange(encodeQuestion("a.org", 1), signal()), /altnames|IP/);
    await right.exchange(encodeQuestion("a.org", 1), signal());
    await pool[Symbol.asyncDispose]();
  });

  test("no server listens: the question fails soon, and says where", async () => {
    const peer = await openDoqServer();
    const { port } = peer;
    await peer[Symbol.asyncDispose]();
    await using upstream = openUpstream(`quic://${HOST}:${port}${TRUSTING}`);
    await assert.rejects(upstream.ask("a.org"), new RegExp(`127.0.0.1:${port}`));
  });

  test("through an exit that carries no datagrams the error says so", async () => {
    const dialer = {
      connect: () => Promise.reject(new Error("not asked")),
      associate: () => Promise.reject(new Error("node a: udp is not enabled for this proxy")),
    };
    await using dns = await openTestDns(
      { nameserver: [server("quic://127.0.0.1#a")], ipv6: false },
      { exitFor: () => ({ dialer, kind: "proxy" }) },
    );
    await assert.rejects(dns.resolver.lookup("a.org", { signal: signal() }), /node a: udp is not enabled/);
  });

  test("without QUIC prefer-h3 means HTTP/2, with a warning", async () => {
    const warnings: string[] = [];
    const log = { ...ENV.log, warning: (text: string) => void warnings.push(text) };
    await using _dns = await openTestDns(
      { nameserver: [server("rcode://success")], preferH3: true },
      { hasQuic: () => false, log },
    );
    assert.deepEqual(warnings.length, 1);
    assert.match(warnings[0] ?? "", /prefer-h3.*node:ffi.*HTTP\/2 is used/);
  });
});

describe("DNS over HTTP/3", { skip: SKIP }, () => {
  test("one connection carries many questions", async () => {
    await using peer = await openHttp3Server();
    await using upstream = openUpstream(`h3://${HOST}:${peer.port}/dns-query${TRUSTING}`);
    const answers = await Promise.all(["a.org", "b.org"].map((name) => upstream.ask(name)));
    assert.ok(answers.every(({ answers: [first] }) => first?.data.join(".") === "192.0.2.1"));
    assert.equal(peer.connections.length, 1);
  });

  test("an answer that is no 200 is an error", async () => {
    await using peer = await openHttp3Server("503");
    await using upstream = openUpstream(`https://${HOST}:${peer.port}/q#h3=true&skip-cert-verify=true`);
    await assert.rejects(upstream.ask("a.org"), /HTTP status 503/);
  });

  test("prefer-h3: the faster way is kept to, and left when it is gone", async () => {
    const [port] = (await freePorts(1)) as [number]; // the same for TCP and for UDP
    await using fast = await openHttp3Server("200", port);
    const asked: string[] = [];
    const { cert, key } = quicCertificate;
    const slow = createSecureServer(
      { cert, key },
      (request: Http2ServerRequest, response: Http2ServerResponse) => {
        const query = new URL(request.url, "https://x").searchParams.get("dns") ?? "";
        const message = decodeMessage(Buffer.from(query, "base64url"));
        asked.push(message.questions[0]?.name ?? "");
        response.end(Buffer.from(encodeMessage(answerTo(message))));
      },
    );
    slow.listen(port, HOST);
    await once(slow, "listening");
    const sessions = new Set<{ destroy(): void }>();
    slow.on("session", (session) => sessions.add(session));
    try {
      await using upstream = openUpstream(`https://${HOST}:${port}/q${TRUSTING}`, { preferHttp3: true });
      await upstream.ask("a.org");
      fast.isOnline = false;
      upstream.reset(); // the network is another
      await upstream.ask("b.org");
      await upstream.ask("c.org");
      assert.deepEqual(asked.slice(-2), ["b.org", "c.org"]);
    } finally {
      for (const session of sessions) session.destroy();
      slow.close();
    }
  });
});
