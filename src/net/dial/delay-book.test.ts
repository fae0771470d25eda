import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { test } from "node:test";
import { DialError } from "#core/errors.ts";
import type { Dialer } from "#core/outbound.ts";
import { DelayBook } from "./delay-book.ts";
import { probe, statusIn } from "./http-probe.ts";
import { DEFAULT_TRUST } from "./trust.ts";

test("ten samples per node and URL, the newest last", () => {
  let nowMs = 0;
  const book = new DelayBook(() => ++nowMs);
  assert.deepEqual(book.of("a"), { alive: true, history: [] });
  for (let round = 1; round <= 12; round++) book.record("a", "http://x/", round, true);
  book.record("a", "http://y/", 5, false);
  assert.equal(book.of("a").history.length, 10);
  assert.deepEqual(book.of("a").history.at(-1), { atMs: 13, delayMs: 5 });
  assert.equal(book.of("a").alive, true);
  assert.equal(book.for("a", "http://y/").alive, false);
  assert.equal(book.for("a", "http://x/").history.at(0)?.delayMs, 3);
  book.record("a", "http://x/", 0, true);
  assert.equal(book.of("a").alive, false);
  for (let at = 0; at < 40; at++) book.record("a", `http://${at}/`, 1, true);
  assert.equal(book.urlsOf("a").size, 16);
  book.prune((node) => node !== "a");
  assert.equal(book.of("a").history.length, 0);
});

/** Dials loopback, whatever was asked for. */
function loopbackDialer(port: () => number): Dialer {
  return {
    async connect() {
      const socket = connect({ host: "127.0.0.1", port: port(), allowHalfOpen: true });
      await once(socket, "connect");
      return socket;
    },
    associate: () => Promise.reject(new DialError("unsupported", "no datagrams")),
  };
}

test("a probe measures one HEAD, or the second one of a warm connection", async () => {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    seen.push(`${request.method} ${request.headers.host} ${request.url}`);
    response.writeHead(204).end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const dialer = loopbackDialer(() => port);
  const signal = new AbortController().signal;
  const url = "http://test.example/generate_204?x=1";
  const once1 = await probe(dialer, { url, timeoutMs: 5000, unified: false, trust: DEFAULT_TRUST, signal });
  assert.equal(once1.status, 204);
  assert.ok(once1.delayMs >= 1);
  assert.deepEqual(seen, ["HEAD test.example /generate_204?x=1"]);
  await probe(dialer, { url, timeoutMs: 5000, unified: true, trust: DEFAULT_TRUST, signal });
  assert.equal(seen.length, 3);
  server.closeAllConnections();
  server.close();
});

test("a probe that gets no answer is a time-out, nonsense is a failure", async () => {
  const { createServer: listen } = await import("node:net");
  const silent = listen((socket) => void socket.on("error", () => socket.destroy()));
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
  const dialer = loopbackDialer(() => (silent.address() as AddressInfo).port);
  const signal = new AbortController().signal;
  const url = "http://test.example/";
  await assert.rejects(probe(dialer, { url, timeoutMs: 30, unified: false, trust: DEFAULT_TRUST, signal }), {
    reason: "timeout",
  });
  silent.on("connection", (socket) => socket.end("nonsense\r\n\r\n"));
  await assert.rejects(
    probe(dialer, { url, timeoutMs: 5000, unified: false, trust: DEFAULT_TRUST, signal }),
    { reason: "failed" },
  );
  await assert.rejects(
    probe(dialer, { url: "ftp://x", timeoutMs: 1, unified: false, trust: DEFAULT_TRUST, signal }),
    {
      reason: "unsupported",
    },
  );
  silent.close();
});

test("expected statuses", () => {
  assert.ok(statusIn(204, null));
  assert.ok(statusIn(204, [[200, 299]]));
  assert.ok(
    !statusIn(301, [
      [200, 299],
      [404, 404],
    ]),
  );
});
