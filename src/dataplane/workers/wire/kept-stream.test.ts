import assert from "node:assert/strict";
import { test } from "node:test";
import { openIo } from "../../../../test/support/memory-wire.ts";
import { KeptStream, type StreamOwner } from "./kept-stream.ts";

test("single bytes that wait are kept in one piece, and read so", () => {
  const owner = { inner: { readable: false }, reader: null, onRoom() {} } as unknown as StreamOwner;
  const stream = new KeptStream(owner, 1);
  const io = openIo();
  const said = Buffer.from("a client decides how little is in a frame");
  for (let at = 0; at < said.length; at++) assert.equal(stream.arrive(said, at, at + 1), false);
  assert.equal(stream.read(io, 8), 8);
  assert.equal(stream.read(io, 100), said.length - 8);
  const rest = Buffer.from(io.calls.buffer.subarray(0, said.length - 8));
  assert.equal(String(rest), String(said.subarray(8)));
  assert.equal(stream.readable, false);
});
