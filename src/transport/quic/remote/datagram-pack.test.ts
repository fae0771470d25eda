import assert from "node:assert/strict";
import { test } from "node:test";
import { DatagramPack, unpackDatagrams } from "./datagram-pack.ts";
import type { Sealed } from "./outbox.ts";

test("datagrams of a turn go in few messages, in order, and their memory is given back", () => {
  const packs: Uint8Array<ArrayBuffer>[] = [];
  const held: Sealed[] = [];
  const pack = new DatagramPack({ hold: (one) => void held.push(one) }, (bytes) => void packs.push(bytes));
  const sizes = [0, 1, 1200, 65_000, ...Array.from({ length: 400 }, (_, index) => index * 3)];
  for (let turn = 0; turn < 3; turn++) {
    for (const size of sizes) {
      const payload = Buffer.alloc(size, size);
      pack.add(payload.subarray(0, 15), payload.subarray(15));
    }
    assert.equal(held.length, 1, "it is held once a turn");
    for (const one of held.splice(0)) one.seal();
    const came: Buffer[] = [];
    const messages = packs.splice(0);
    for (const bytes of messages) {
      unpackDatagrams(bytes, (payload) => void came.push(Buffer.from(payload)));
      assert.equal(bytes.length, 0);
    }
    assert.deepEqual(
      came.map((payload) => [payload.length, payload.every((byte) => byte === payload.length % 256)]),
      sizes.map((size) => [size, true]),
    );
    assert.ok(messages.length < 12, `${messages.length}`);
  }
});
