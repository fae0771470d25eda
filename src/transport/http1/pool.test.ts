import assert from "node:assert/strict";
import { once } from "node:events";
import { duplexPair } from "node:stream";
import { test } from "node:test";
import { Http1Pool } from "./pool.ts";

const context = { signal: new AbortController().signal, metadata: null };

/** The head of one request as it goes out. */
async function headOf(body: Buffer | "stream" | null): Promise<string> {
  const [near, far] = duplexPair();
  await using pool = new Http1Pool(async () => ({
    stream: near,
    alpn: null,
    serverName: null,
    bypass: null,
  }));
  const request = {
    method: "POST",
    scheme: "http",
    authority: "a.test",
    path: "/x",
    headers: {},
    body,
  } as const;
  const exchange = await pool.open(request, context);
  exchange.on("error", () => {});
  const [head] = (await once(far, "data")) as [Buffer];
  exchange.destroy();
  far.destroy();
  return head.toString("latin1");
}

test("a request that streams says that it is the last: Go's servers would read it to its end first", async () => {
  assert.match(await headOf("stream"), /\r\nconnection: close\r\n/i);
  assert.match(await headOf("stream"), /\r\ntransfer-encoding: chunked\r\n/i);
  for (const body of [Buffer.from("x"), null])
    assert.match(await headOf(body), /\r\nconnection: keep-alive\r\n/i);
});
