import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, test } from "node:test";
import fc from "fast-check";
import { ProtocolError } from "#core/errors.ts";
import { runs } from "../../../test/support/runs.ts";
import { BlockCutter } from "#protocols/shared/vision-cutter.ts";
import { HandshakeInspector, RecordTracker } from "#protocols/shared/vision-inspector.ts";
import {
  type Command,
  CONTINUE,
  DIRECT,
  encodeBlock,
  END,
  MAX_CONTENT_BYTES,
  Unpadder,
} from "#protocols/shared/vision-padding.ts";

const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex");
const id = hex("b831381d63244d53ad4f8cda48b30811");

function unpadded(wire: Buffer, cut: number) {
  const unpadder = new Unpadder(id);
  const got: Buffer[] = [];
  let behind = Buffer.alloc(0);
  for (let at = 0; at < wire.length; at += cut) {
    const piece = wire.subarray(at, at + cut);
    if (unpadder.state !== "padded") behind = Buffer.concat([behind, piece]);
    else {
      const rest = unpadder.take(piece, (content) => got.push(Buffer.from(content)));
      if (rest !== null) behind = Buffer.concat([behind, rest]);
    }
  }
  return { content: Buffer.concat(got), behind, state: unpadder.state };
}

describe("vision blocks", () => {
  test("published blocks, cut anywhere", () => {
    const first = hex("b831381d63244d53ad4f8cda48b30811 00 0002 0004 6869 00000000");
    const direct = hex("02 0006 0003 1703030001aa 000000");
    const wire = Buffer.concat([first, direct, Buffer.from("raw")]);
    for (let cut = 1; cut <= wire.length; cut++) {
      const { content, behind, state } = unpadded(wire, cut);
      assert.deepEqual(content, hex("6869 1703030001aa"));
      assert.equal(String(behind), "raw");
      assert.equal(state, "direct");
    }
  });

  test("content is cut where padding ends, and into what a block may have", () => {
    const bytes = fc.uint8Array({ minLength: 1, maxLength: 3 * MAX_CONTENT_BYTES });
    const property = fc.property(
      fc.array(bytes, { minLength: 1, maxLength: 12 }),
      fc.boolean(),
      (all, mayLeave) => {
        const opening = Buffer.from("opening");
        const cutter = new BlockCutter({ id, opening, mayLeave }, new HandshakeInspector());
        const hasEnded = (): boolean => cutter.command !== CONTINUE;
        const [blocks, sent]: [Buffer[], Uint8Array[]] = [[], []];
        for (let at = 0; at < all.length && !hasEnded(); at++) {
          let rest = Buffer.from(all[at] as Uint8Array);
          do {
            const block = cutter.next(rest);
            assert.ok(block.length <= 8192 + (blocks.length === 0 ? opening.length : 0));
            assert.ok(cutter.taken > 0);
            blocks.push(block);
            sent.push(rest.subarray(0, cutter.taken));
            rest = rest.subarray(cutter.taken);
          } while (cutter.hasMore);
          assert.ok(rest.length === 0 || hasEnded(), "what follows goes without blocks");
        }
        const wire = Buffer.concat(blocks);
        assert.deepEqual(wire.subarray(0, opening.length), opening);
        const { content, behind, state } = unpadded(wire.subarray(opening.length), 1000);
        assert.deepEqual([content, behind.length], [Buffer.concat(sent), 0]);
        assert.equal(state, hasEnded() ? "plain" : "padded");
        assert.equal(cutter.isFirst, false);
      },
    );
    fc.assert(property, { numRuns: runs(100) });
  });

  test("blocks round-trip and keep their bounds", () => {
    const property = fc.property(
      fc.array(fc.integer({ min: 0, max: MAX_CONTENT_BYTES }), { minLength: 1, maxLength: 5 }),
      fc.integer({ min: 1, max: 9000 }),
      fc.boolean(),
      fc.constantFrom<Command>(END, DIRECT),
      (sizes, cut, long, last) => {
        const contents = sizes.map((size) => randomBytes(size));
        const blocks = contents.map((content, index) =>
          encodeBlock(index === 0 ? id : null, index === sizes.length - 1 ? last : CONTINUE, content, long),
        );
        for (const block of blocks) assert.ok(block.length <= 8192);
        if (long && sizes[0] === 0) assert.ok((blocks[0] as Buffer).length >= 900);
        const { content, behind, state } = unpadded(Buffer.concat([...blocks, Buffer.from("!")]), cut);
        assert.deepEqual(content, Buffer.concat(contents));
        assert.equal(String(behind), "!");
        assert.equal(state, last === DIRECT ? "direct" : "plain");
      },
    );
    fc.assert(property, { numRuns: runs(60) });
  });

  test("a stream without the id is not padded; unknown commands are refused; random bytes", () => {
    const half = Buffer.concat([id.subarray(0, 9), Buffer.from("other")]);
    for (let cut = 1; cut <= half.length; cut++) {
      const { content, behind } = unpadded(half, cut);
      assert.deepEqual(Buffer.concat([content, behind]), half);
    }
    assert.throws(() => unpadded(Buffer.concat([id, hex("03 0000 0000")]), 100), ProtocolError);
    const property = fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      try {
        unpadded(Buffer.concat([id, bytes]), 7);
      } catch (error) {
        assert.ok(error instanceof ProtocolError);
      }
    });
    fc.assert(property, { numRuns: runs(300) });
  });
});

/** A ServerHello record with this cipher, with or without supported_versions. */
function serverHello(cipher: number, tls13: boolean): Buffer {
  const body = Buffer.alloc(tls13 ? 100 : 90);
  body[0] = 2;
  body[38] = 32; // session id
  body.writeUInt16BE(cipher, 71);
  if (tls13) hex("002b00020304").copy(body, 80);
  const head = hex("160303 0000");
  head.writeUInt16BE(body.length, 3);
  return Buffer.concat([head, body]);
}

describe("what vision sees inside", () => {
  const clientHello = Buffer.concat([hex("160301 0010 01"), Buffer.alloc(15)]);
  const seen = (...pieces: Buffer[]) => {
    const inspector = new HandshakeInspector();
    for (const piece of pieces) inspector.see(piece);
    return inspector;
  };

  test("TLS 1.3 may leave, TLS 1.2 and CCM_8 may not", () => {
    const { isTls, isTls12OrAbove, directAllowed, left } = seen(clientHello, serverHello(0x1301, true));
    assert.deepEqual([isTls, isTls12OrAbove, directAllowed, left], [true, true, true, 0]);
    assert.equal(seen(clientHello, serverHello(0x1305, true)).directAllowed, false);
    const old = seen(clientHello, serverHello(0xc02f, false));
    assert.deepEqual([old.isTls12OrAbove, old.directAllowed, old.left], [true, false, 0]);
  });

  test("a version in a later piece is found; eight pieces and no more", () => {
    const hello = serverHello(0x1302, true);
    const split = seen(clientHello, hello.subarray(0, 82), hello.subarray(82));
    assert.equal(split.directAllowed, true);
    const plain = seen(...Array.from({ length: 9 }, () => Buffer.from("hello")));
    assert.deepEqual([plain.isTls, plain.left], [false, 0]);
  });

  test("the record tracker finds the end of the first application record in any pieces", () => {
    const records = Buffer.concat([
      hex("160303 0002 0000"),
      hex("140303 0001 01"),
      hex("170303 0003 aabbcc"),
      hex("1703"),
    ]);
    for (let cut = 1; cut <= records.length; cut++) {
      const tracker = new RecordTracker();
      let end = -1;
      for (let at = 0; at < records.length && end < 0; at += cut) {
        const inPiece = tracker.follow(records.subarray(at, at + cut), true);
        if (inPiece >= 0) end = at + inPiece;
      }
      assert.equal(end, records.length - 2);
    }
    const lost = new RecordTracker();
    assert.equal(lost.follow(Buffer.from("GET / HTTP/1.1"), true), -1);
    assert.equal(lost.lost, true);
  });
});
