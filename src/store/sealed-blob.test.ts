import assert from "node:assert/strict";
import { test } from "node:test";
import { zstdDecompressSync } from "node:zlib";
import { crc32c } from "./crc32c.ts";
import { DamageError, seal, unseal, unsealAll } from "./sealed-blob.ts";

const valueOf = (at: number) => Buffer.from(JSON.stringify({ id: `user ${at}`, text: `${at}`.repeat(40) }));

test("CRC-32C has its check value", () => {
  assert.equal(crc32c(Buffer.from("123456789")), 0xe3069283);
  assert.equal(crc32c(Buffer.from("1234"), Buffer.from("56789")), 0xe3069283);
});

test("CRC-32C: the examples of RFC 3720 B.4", () => {
  const rising = Buffer.from(Array.from({ length: 32 }, (_, at) => at));
  assert.equal(crc32c(Buffer.alloc(32)), 0x8a9136aa);
  assert.equal(crc32c(Buffer.alloc(32, 0xff)), 0x62a8ab43);
  assert.equal(crc32c(rising), 0x46dd794e);
  assert.equal(crc32c(rising.toReversed()), 0x113fdb5c);
});

test("a sealed blob opens under its own key only, and every changed or cut byte shows", () => {
  const original = valueOf(7);
  const blob = seal("k7", original);
  assert.deepEqual(unseal("k7", blob), original);
  assert.throws(() => unseal("k8", blob), DamageError);
  for (let at = 0; at < blob.length; at++) {
    assert.throws(() => unseal("k7", blob.subarray(0, at)), DamageError);
    const changed = Buffer.from(blob);
    changed[at] = (changed[at] as number) ^ 0x40;
    assert.throws(() => unseal("k7", changed), DamageError, `byte ${at}`);
  }
});

test("a short value is a Zstandard frame as well, which anybody can unpack", () => {
  for (const size of [0, 1, 2, 127, 128, 255, 256, 257, 5000]) {
    const original = Buffer.alloc(size);
    crypto.getRandomValues(original);
    const blob = seal("k", original);
    assert.equal(blob.toString("latin1", 0, 4), "TCZ1");
    assert.deepEqual(zstdDecompressSync(blob.subarray(12)), original, `${size} bytes`);
    assert.deepEqual(unseal("k", blob), original);
  }
  assert.ok(seal("k", Buffer.alloc(5000)).length < 100, "and a long one is compressed");
});

test("a plain blob is read, and an enormous length is refused before anything is unpacked", () => {
  const original = valueOf(1);
  const blob = Buffer.alloc(12);
  blob.write("TCR1", "latin1");
  blob.writeUInt32BE(original.length, 4);
  blob.writeUInt32BE(crc32c(Buffer.from("k\0"), original), 8);
  assert.deepEqual(unseal("k", Buffer.concat([blob, original])), original);
  const bomb = seal("k", Buffer.alloc(1024));
  bomb.writeUInt32BE(0x7fffffff, 4);
  assert.throws(() => unseal("k", bomb), DamageError);
});

test("many records are opened in their order, whatever their size and form", () => {
  const values = Array.from({ length: 700 }, (_, at): [string, Buffer] => {
    const size = at === 300 ? 2_000_000 : at === 301 ? 0 : (at * 37) % 3000;
    return [`k${at}`, Buffer.alloc(size, `${at} is its text`)];
  });
  const blobs = values.map(([key, value]): [string, Buffer] => [key, seal(key, value)]);
  const plain = Buffer.alloc(12);
  plain.write("TCR1", "latin1");
  plain.writeUInt32BE(3, 4);
  plain.writeUInt32BE(crc32c(Buffer.from("plain\0"), Buffer.from("abc")), 8);
  blobs.splice(500, 0, ["plain", Buffer.concat([plain, Buffer.from("abc")])]);
  values.splice(500, 0, ["plain", Buffer.from("abc")]);
  assert.deepEqual([...unsealAll(blobs)], values);
  assert.deepEqual([...unsealAll([])], []);
});

test("among many records the damaged one is named, whichever byte it is and whatever its neighbours are", () => {
  const blobs = [6, 7, 8].map((at): [string, Buffer] => [`k${at}`, seal(`k${at}`, valueOf(at))]);
  const withSecond = (key: string, blob: Buffer) => blobs.with(1, [key, blob]);
  const second = seal("k7", valueOf(7));
  for (let at = 0; at < second.length; at++) {
    const changed = Buffer.from(second);
    changed[at] = (changed[at] as number) ^ 0x40;
    assert.throws(() => [...unsealAll(withSecond("k7", changed))], /record k7/, `byte ${at}`);
    assert.throws(
      () => [...unsealAll(withSecond("k7", second.subarray(0, at)))],
      /record k7/,
      `cut at ${at}`,
    );
  }
  assert.throws(() => [...unsealAll(withSecond("k9", second))], DamageError);
  // One says a byte less, its neighbour one more: together they are as long as they should be.
  const shifted = blobs.map(([key, blob], at): [string, Buffer] => {
    const copy = Buffer.from(blob);
    copy.writeUInt32BE(copy.readUInt32BE(4) + ([-1, 1, 0][at] ?? 0), 4);
    return [key, copy];
  });
  assert.throws(() => [...unsealAll(shifted)], /record k6/);
});
