import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, connect } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { duplexPair } from "node:stream";
import { Duplex } from "node:stream";
import { test } from "node:test";
import { GIVES } from "#core/stream.ts";
import { peekStream } from "./peek.ts";
import type { PeekOptions } from "./peek.ts";
import { readHandshake } from "./read-handshake.ts";

async function socketPair(): Promise<readonly [client: Socket, server: Socket]> {
  const listener = createServer({ allowHalfOpen: true });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as AddressInfo;
  const client = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  const [server] = (await once(listener, "connection")) as [Socket];
  listener.close();
  return [client, server];
}

function peek(stream: Duplex, options: Partial<PeekOptions>) {
  const pieces: string[] = [];
  let waits = 0;
  const done = peekStream(stream, {
    look: () => false,
    timeoutMs: 5_000,
    maxBytes: 1000,
    signal: new AbortController().signal,
    ...options,
    onWait: () => waits++,
    ...(options.look === undefined
      ? {}
      : { look: (piece) => pieces.push(String(piece)) > 0 && options.look!(piece) }),
  });
  return { done, pieces, waits: () => waits };
}

async function readAll(stream: Duplex): Promise<string> {
  let text = "";
  stream.on("data", (chunk) => (text += String(chunk)));
  if (!stream.readableEnded) await once(stream, "end");
  return text;
}

test("bytes that came in pieces are put back in order, and the end behind them", async () => {
  for (const pair of [socketPair, async () => duplexPair()]) {
    const [client, server] = await pair();
    const seen = Promise.withResolvers<void>();
    const { done, waits } = peek(server, {
      look: (piece) => (seen.resolve(), String(piece).endsWith("b")),
    });
    client.write("a");
    await seen.promise;
    client.write("b");
    await done;
    assert.equal(waits(), 1);
    client.end("c");
    assert.equal(await readAll(server), "abc");
    server.destroy();
    client.destroy();
  }
});

test("a client that says half and ends: what it said is there, and its end", async () => {
  for (const pair of [socketPair, async () => duplexPair()]) {
    const [client, server] = await pair();
    const { done } = peek(server, { look: () => false, timeoutMs: 50 });
    client.end("half");
    await done;
    assert.equal(await readAll(server), "half");
    server.destroy();
    client.destroy();
  }
});

test("bytes that are there already are returned without waiting", async () => {
  const [, server] = duplexPair();
  server.unshift("hello");
  const { done, waits, pieces } = peek(server, { look: () => true });
  await done;
  assert.deepEqual([waits(), pieces, server.readableLength], [0, ["hello"], 5]);
});

test("the end, a close, the signal, the time and the bound end it", async () => {
  const stop = new AbortController();
  const [ended, closed, aborted, late, full] = Array.from({ length: 5 }, () => duplexPair());
  const all = [
    peek(ended![1], {}),
    peek(closed![1], {}),
    peek(aborted![1], { signal: stop.signal }),
    peek(late![1], { timeoutMs: 1 }),
    peek(full![1], { maxBytes: 3 }),
  ];
  ended![0].end();
  closed![1].destroy();
  stop.abort();
  late![0].write("x");
  full![0].write("1234");
  await Promise.all(all.map(({ done }) => done));
  assert.equal(full![1].readableLength, 4);
  assert.deepEqual(
    all.map(({ waits }) => waits()),
    [1, 1, 1, 1, 1],
  );
});

/** A stream whose reader may do with the memory of its chunks what it likes. */
class GivingStream extends Duplex {
  readonly [GIVES] = true;
  override _read(): void {}
}

test("what is put back on a stream that gives its chunks away lies in memory of its own", async () => {
  const peeked = new GivingStream();
  const { done } = peek(peeked, { look: () => true });
  peeked.push(Buffer.from("ab"));
  peeked.push(Buffer.from("c"));
  await done;
  const read = new GivingStream();
  const whole = readHandshake(read, (arrived) => arrived.take(2), 5_000);
  for (const piece of ["a", "bc"]) read.push(Buffer.from(piece));
  await whole;
  for (const stream of [peeked, read]) {
    const { buffer, length }: Buffer = stream.read();
    assert.equal(buffer.byteLength, length);
    assert.ok(buffer instanceof ArrayBuffer);
    buffer.transfer(0); // as it is given back behind the last use: a pool of the runtime would refuse
  }
});
