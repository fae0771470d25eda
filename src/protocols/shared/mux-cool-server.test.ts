import assert from "node:assert/strict";
import { once } from "node:events";
import { type Duplex, duplexPair } from "node:stream";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { SILENT } from "#core/log.ts";
import { toDestination } from "#net/address/ip.ts";
import {
  encodeFrame,
  MAX_CHUNK_BYTES,
  NETWORK_TCP,
  STATUS_END,
  STATUS_KEEP,
  STATUS_NEW,
} from "./mux-cool-frame.ts";
import { MuxServer } from "./mux-cool-server.ts";

const destination = toDestination("a.test", 80);
const opening = (session: number): Buffer =>
  encodeFrame({ session, status: STATUS_NEW, network: NETWORK_TCP, destination });
const says = (session: number, data: Buffer): Buffer => encodeFrame({ session, status: STATUS_KEEP, data });

test("a stream that says much with its end holds others up until it is read, and no longer", async () => {
  const [near, far] = duplexPair();
  const streams: Duplex[] = [];
  const onStream = (stream: Duplex): void => void streams.push(stream);
  new MuxServer(far, { datagramsOnly: false, onStream, onFlow: () => assert.fail(), log: SILENT });
  const pieces = Array.from({ length: 20 }, () => says(1, Buffer.alloc(MAX_CHUNK_BYTES, 1)));
  near.write(
    Buffer.concat([opening(1), opening(2), ...pieces, encodeFrame({ session: 1, status: STATUS_END })]),
  );
  near.write(says(2, Buffer.from("still")));
  await once(far, "pause");
  const [one = assert.fail(), two = assert.fail()] = streams;
  let got = 0;
  one.on("data", (data: Buffer) => (got += data.length));
  const [[said]] = await Promise.all([once(two, "data"), once(one, "end")]);
  assert.equal(String(said), "still");
  assert.equal(got, 20 * MAX_CHUNK_BYTES);
  for (const stream of [...streams, far]) stream.destroy();
});

const ending = encodeFrame({ session: 1, status: STATUS_END });

function served() {
  const [near, far] = duplexPair();
  const streams: Duplex[] = [];
  void new MuxServer(far, {
    datagramsOnly: false,
    onStream: (stream) => streams.push(stream.resume()),
    onFlow: () => assert.fail("a flow"),
    log: SILENT,
  });
  near.resume();
  const send = async (...frames: Buffer[]): Promise<void> => {
    for (const frame of frames) near.write(frame);
    for (let turns = 0; turns < 10; turns++) await turn();
  };
  return { near, streams, send };
}

test("an end is that of one direction; a second one, the answer to data, breaks the stream off", async () => {
  const { near, streams, send } = served();
  await send(opening(1));
  const [stream] = streams;
  assert.ok(stream);
  const ended = once(stream, "end");
  await send(ending);
  await ended;
  stream.write("more");
  await send(says(1, Buffer.from("behind its end")));
  assert.equal(stream.destroyed, false);
  await send(ending);
  assert.equal(stream.destroyed, true);
  near.destroy();
});

test("a stream that closes late leaves the one alone that has its number by now", async () => {
  const { near, streams, send } = served();
  await send(opening(1), ending, opening(1));
  const [first, second] = streams;
  assert.deepEqual([first?.destroyed, second?.destroyed], [true, false]);
  const heard = once(second as Duplex, "data");
  await send(says(1, Buffer.from("hello")));
  assert.equal(String((await heard)[0]), "hello");
  near.destroy();
});

test("data of sub-sessions that are none is answered to a peer that reads, and ends one that does not", async () => {
  for (const reads of [true, false]) {
    const [near, far] = duplexPair();
    new MuxServer(far, {
      datagramsOnly: false,
      onStream: () => assert.fail(),
      onFlow: () => assert.fail(),
      log: SILENT,
    });
    if (reads) near.resume();
    const some = Buffer.concat(Array.from({ length: 1_000 }, () => says(9, Buffer.of(1))));
    for (let sent = 0; sent < 60 && !far.destroyed; sent++) {
      near.write(some);
      await turn();
    }
    await turn();
    assert.equal(far.destroyed, !reads);
    for (const end of [near, far]) end.destroy();
  }
});
