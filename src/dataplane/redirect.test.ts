import assert from "node:assert/strict";
import { duplexPair } from "node:stream";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { redirect } from "./redirect.ts";

test("a client whose stream its protocol had paused is answered when it has asked", async () => {
  const [client, server] = duplexPair();
  server.pause();
  const startedMs = performance.now();
  const over = redirect(server, "http://portal.example/?e=1");
  client.end("GET / HTTP/1.1\r\nHost: origin.example\r\n\r\n");
  assert.match(await text(client), /^HTTP\/1\.1 302 Found\r\nLocation: http:\/\/portal\.example\/\?e=1\r\n/);
  await over;
  assert.ok(performance.now() - startedMs < 4000, "it did not wait for more");
});
