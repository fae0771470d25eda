/** XHTTP over HTTP/3 as a node: its requests against a server in the same process that echoes. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, test } from "node:test";
import { ByteQueue } from "#lib/byte-queue.ts";
import { openDirectDialer } from "#net/dial/direct-dialer.ts";
import { SILENT } from "#core/log.ts";
import { encodeHeaders, peekFrame, takeHeaders } from "#transport/http3/request.ts";
import { openTransportClient } from "#transport/open-transport-client.ts";
import type { QuicStream } from "#transport/quic/streams/quic-stream.ts";
import { openQuicServer } from "../support/quic-server.ts";
import { literalsOnly } from "../support/resolvers.ts";
import { textFiles } from "../support/text-files.ts";
import { tlsProvider } from "../support/tls.ts";
import { until } from "../support/until.ts";

const SKIP = process.platform === "linux" ? false : "SKIP libssl by FFI: only on Linux";

const dataFrame = (bytes: Buffer) => {
  const head = Buffer.alloc(5, 0);
  head.writeUInt32BE(0x80000000 + bytes.length, 1);
  return Buffer.concat([head, bytes]);
};

/** The bodies of all POST requests of a path's first two parts go into the answer to its first request; of those with numbers in their order. */
function openEchoServer(status = "200") {
  const asked: string[] = [];
  const answers = new Map<string, QuicStream>();
  const parts = new Map<string, Buffer>();
  const nexts = new Map<string, number>();
  const answerParts = (session: string): void => {
    let next = nexts.get(session) ?? 0;
    for (
      let body = parts.get(`${session}/${next}`);
      body !== undefined;
      body = parts.get(`${session}/${next}`)
    ) {
      answers.get(session)?.write(dataFrame(body));
      nexts.set(session, ++next);
    }
  };
  const onRequest = (stream: QuicStream, method: string, path: string): ((body: Buffer) => void) => {
    asked.push(`${method} ${path.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "ID")}`);
    const key = path.split("/").slice(0, 3).join("/");
    const isFirst = !answers.has(key);
    if (isFirst) answers.set(key, stream);
    stream.write(encodeHeaders([[":status", status]]));
    const answer = answers.get(key);
    if (path.split("/").length > 3) {
      const bodies: Buffer[] = [];
      stream.on("end", () => {
        stream.end();
        parts.set(path, Buffer.concat(bodies));
        answerParts(key);
      });
      return (body) => void bodies.push(body);
    }
    stream.on("end", () => {
      if (method !== "POST") return;
      answer?.end();
      stream.end();
    });
    return (body) => answer?.write(dataFrame(body));
  };
  const onStream = (stream: QuicStream) => {
    stream.on("error", () => {});
    if (stream.send === null) return void stream.resume();
    const arrived = new ByteQueue();
    let onBody: ((body: Buffer) => void) | null = null;
    stream.on("data", (chunk: Buffer) => {
      arrived.push(chunk);
      const fields = onBody === null ? takeHeaders(arrived) : null;
      if (fields !== null) {
        const named = new Map(fields);
        onBody = onRequest(stream, named.get(":method") ?? "", named.get(":path") ?? "");
      }
      for (;;) {
        const frame = onBody === null ? null : peekFrame(arrived);
        const whole = frame === null ? null : arrived.take(frame.headBytes + frame.bytes);
        if (frame === null || whole === null) return;
        onBody?.(whole.subarray(frame.headBytes));
      }
    });
  };
  return openQuicServer({ alpn: "h3", onStream }).then((server) => Object.assign(server, { asked }));
}

const openClient = (port: number, mode: string, more: object = {}) =>
  openTransportClient(
    {
      server: "127.0.0.1",
      port,
      serverName: "server.test",
      network: "xhttp",
      tls: true,
      alpn: ["h3"],
      "skip-cert-verify": true,
      "xhttp-opts": { path: "/x", mode, headers: {}, "sc-max-each-post-bytes": 50_000 },
      ...more,
    } as never,
    {
      name: "node",
      dialer: openDirectDialer({ resolver: literalsOnly }),
      resolver: literalsOnly,
      nowMs: Date.now,
      log: SILENT,
      files: textFiles,
      tls: tlsProvider,
    },
  );

const context = () => ({ signal: AbortSignal.timeout(10_000), metadata: null });

describe("XHTTP over HTTP/3", { skip: SKIP }, () => {
  for (const mode of ["stream-one", "stream-up", "packet-up"])
    test(`${mode}: what is written comes back, over one connection`, async () => {
      await using server = await openEchoServer();
      await using client = await openClient(server.port, mode);
      const payload = randomBytes(200_000);
      for (let count = 0; count < 2; count++) {
        const { stream, alpn } = await client.connect(context());
        assert.equal(alpn, "h3");
        stream.write(payload);
        let got = Buffer.alloc(0);
        for await (const piece of stream) {
          got = Buffer.concat([got, piece as Buffer]);
          if (got.length === payload.length) break;
        }
        assert.ok(got.equals(payload));
        stream.destroy();
        if (mode === "stream-one") break; // a path for each is not known to the server of this test
      }
      assert.equal(server.connections.length, 1);
      const first = { "stream-one": "POST /x/", "stream-up": "GET /x/ID", "packet-up": "GET /x/ID" }[mode];
      assert.equal(server.asked[0], first);
    });

  test("requests that last leave room for others: beyond 64 there is another connection", async () => {
    await using server = await openEchoServer();
    await using client = await openClient(server.port, "stream-one");
    const streams = [];
    for (let count = 0; count < 70; count++) streams.push((await client.connect(context())).stream);
    await until("the second connection", () => server.connections.length === 2);
    for (const stream of streams) stream.destroy();
  });

  test("another status than 200 is an error of the stream", async () => {
    await using server = await openEchoServer("404");
    await using client = await openClient(server.port, "stream-one");
    const { stream } = await client.connect(context());
    await assert.rejects(stream.toArray(), /status 404/);
  });

  test("without TLS, and with REALITY, the node says why not", async () => {
    await assert.rejects(openClient(1, "stream-one", { tls: false }), /needs tls: true/);
    const reality = { "reality-opts": { "public-key": "x" } };
    await assert.rejects(openClient(1, "stream-one", reality), /REALITY is not spoken over HTTP\/3/);
  });
});
