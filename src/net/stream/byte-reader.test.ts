import assert from "node:assert/strict";
import { duplexPair, type Duplex } from "node:stream";
import { test } from "node:test";
import { DialError, ProtocolError } from "#core/errors.ts";
import { ByteReader, type Decoder } from "./byte-reader.ts";

/** A length byte, then so many bytes. */
const word: Decoder<string> = (bytes) => {
  const size = 1 + (bytes[0] ?? Infinity);
  if (bytes[0] === 0xff) throw new ProtocolError("255 is no length");
  return bytes.length < size ? null : { value: bytes.toString("latin1", 1, size), size };
};

function pair(): readonly [ours: Duplex, theirs: Duplex] {
  const [ours, theirs] = duplexPair();
  ours.on("error", () => {});
  theirs.on("error", () => {});
  return [ours, theirs];
}

async function readRest(stream: Duplex): Promise<string> {
  let text = "";
  for await (const chunk of stream) text += String(chunk);
  return text;
}

test("messages in one piece; what is behind them stays in the stream, with its end", async () => {
  const [ours, theirs] = pair();
  theirs.end("\x03one\x03twothe rest");
  {
    using reader = new ByteReader(ours);
    assert.equal(await reader.take(word), "one");
    assert.equal(await reader.take(word), "two");
    await new Promise(setImmediate); // the end arrives meanwhile
  }
  assert.equal(await readRest(ours), "the rest");
});

test("a message behind another, in a chunk that had come before anybody read", async () => {
  const [ours, theirs] = pair();
  theirs.write("\x03one\x05");
  theirs.write("hello");
  await new Promise(setImmediate);
  using reader = new ByteReader(ours);
  assert.equal(await reader.take(word), "one");
  await new Promise(setImmediate); // nothing more will be told of what is buffered
  assert.equal(await reader.take(word), "hello");
});

test("messages byte by byte", async () => {
  const [ours, theirs] = pair();
  using reader = new ByteReader(ours);
  const taken = reader.take(word);
  for (const byte of "\x05hello\x02") {
    theirs.write(byte);
    await new Promise(setImmediate);
  }
  assert.equal(await taken, "hello");
  theirs.write("ok!");
  assert.equal(await reader.take(word), "ok");
});

test("a decoder learns what it has seen already", async () => {
  const [ours, theirs] = pair();
  using reader = new ByteReader(ours);
  const calls: [number, number][] = [];
  const taken = reader.take((bytes, seen) => {
    calls.push([bytes.length, seen]);
    return bytes.length < 3 ? null : { value: null, size: 3 };
  });
  for (const part of ["a", "b", "c"]) {
    theirs.write(part);
    await new Promise(setImmediate);
  }
  await taken;
  assert.deepEqual(calls, [
    [1, 0],
    [2, 1],
    [3, 2],
  ]);
});

test("looking without taking", async () => {
  const [ours, theirs] = pair();
  theirs.end("abc");
  {
    using reader = new ByteReader(ours);
    assert.equal(await reader.take((bytes) => ({ value: bytes[0], size: 0 })), 97);
    assert.equal(await reader.take((bytes) => ({ value: bytes[0], size: 1 })), 97);
  }
  assert.equal(await readRest(ours), "bc");
});

test("faults: the decoder's, an early end, too many bytes, the deadline, an abort", async () => {
  const fail = async (act: (theirs: Duplex) => void, bounds = {}) => {
    const [ours, theirs] = pair();
    using reader = new ByteReader(ours, bounds);
    const taken = reader.take(word);
    act(theirs);
    return await taken.then(
      () => assert.fail("it must not succeed"),
      (error: NodeJS.ErrnoException) => error,
    );
  };
  assert.equal((await fail((theirs) => theirs.write("\xff", "latin1"))) instanceof ProtocolError, true);
  assert.match((await fail((theirs) => theirs.end("\x05he"))).message, /middle of the handshake/);
  assert.match((await fail((theirs) => theirs.destroy())).message, /middle of the handshake/);
  const long = await fail((theirs) => theirs.write(`\x50${"x".repeat(40)}`), { maxBytes: 40 });
  assert.match(long.message, /within 40 bytes/);
  assert.equal((await fail(() => {}, { timeoutMs: 1 })).code, "ETIMEDOUT");
  const abort = new AbortController();
  const aborted = await fail(() => abort.abort(), { signal: abort.signal });
  assert.equal((aborted as unknown as DialError).reason, "aborted");
});

test("a stream that is gone, a signal that has fired, and a take after a fault fail at once", async () => {
  const [ours] = pair();
  ours.destroy();
  using gone = new ByteReader(ours);
  await assert.rejects(gone.take(word), ProtocolError);
  const [other] = pair();
  using aborted = new ByteReader(other, { signal: AbortSignal.abort() });
  await assert.rejects(aborted.take(word), DialError);
  await assert.rejects(aborted.take(word), DialError);
});

test("disposal rejects a take under way and leaves no listener behind", async () => {
  const [ours, theirs] = pair();
  const before = ours.eventNames().length;
  const reader = new ByteReader(ours);
  const taken = reader.take(word);
  reader[Symbol.dispose]();
  await assert.rejects(taken, /given up/);
  await assert.rejects(reader.take(word), /given up/);
  assert.equal(ours.eventNames().length, before);
  theirs.end("still here");
  assert.equal(await readRest(ours), "still here");
});

test("a second disposal does not stop a stream that flows again", async () => {
  const [ours, theirs] = pair();
  const reader = new ByteReader(ours);
  reader[Symbol.dispose]();
  ours.resume();
  await new Promise(setImmediate);
  reader[Symbol.dispose]();
  await new Promise(setImmediate);
  theirs.end("without a listener, it flows all the same");
  await new Promise((resolve) => ours.on("end", resolve));
});
