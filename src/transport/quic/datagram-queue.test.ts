import assert from "node:assert/strict";
import { test } from "node:test";
import { DatagramQueue } from "./datagram-queue.ts";
import { WireWriter } from "./wire/writer.ts";

const NOTHING = new Uint8Array(0);

function frameOf(queue: DatagramQueue, room = 65_536, isEmptyPacket = true): Buffer | null {
  const out = new WireWriter(Buffer.alloc(65_536));
  return queue.writeFrame(out, room, isEmptyPacket) ? Buffer.from(out.bytes.subarray(0, out.at)) : null;
}

test("datagrams in one piece and in two, in order, from memory that grows and is used again", () => {
  const queue = new DatagramQueue();
  const payloadOf = (index: number): Buffer => Buffer.alloc(1 + (index % 1300), index);
  let [pushed, read] = [0, 0];
  const readOne = (): void => {
    const payload = payloadOf(read++);
    assert.deepEqual(frameOf(queue)?.subarray(-payload.length), payload);
  };
  for (let round = 0; round < 200; round++) {
    for (let count = 0; count < 40 && pushed - read < 300; count++) {
      const payload = payloadOf(pushed++);
      queue.push(payload.subarray(0, 20), payload.subarray(20), 0);
    }
    for (let count = 0; count < 30; count++) readOne();
  }
  while (queue.hasData) readOne();
  assert.equal(read, pushed);
  assert.equal(frameOf(queue), null);
});

test("the newest is dropped beyond the bound, and one that fits into no packet when its turn comes", () => {
  const queue = new DatagramQueue();
  for (let count = 0; count < 1000; count++) queue.push(Buffer.alloc(1200, count), NOTHING, 0);
  let kept = 0;
  while (frameOf(queue) !== null) kept++;
  assert.ok(kept > 400 && kept <= (512 * 1024) / 1200, `${kept}`);
  queue.push(Buffer.alloc(2000), NOTHING, 0);
  queue.push(Buffer.from("next"), NOTHING, 0);
  assert.equal(frameOf(queue, 1400, false), null, "it may fit into a packet of its own");
  assert.equal(frameOf(queue, 1400)?.toString("latin1"), "\x31\x04next");
  queue.push(Buffer.alloc(65_536), NOTHING, 0);
  assert.equal(queue.hasData, false);
});
