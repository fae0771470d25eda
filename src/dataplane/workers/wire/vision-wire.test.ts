/** Blocks of Vision between wires of memory: read from any place within them, and the last one of ours. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { FIRST_BLOCK, type VisionLayer } from "#core/wire-state.ts";
import { EAGAIN, type RelayCalls } from "#platform/linux/relay-calls.ts";
import {
  type Command,
  CONTINUE,
  DIRECT,
  encodeBlock,
  END,
  Unpadder,
} from "#protocols/shared/vision-padding.ts";
import { drain, MemoryWire, openIo } from "../../../../test/support/memory-wire.ts";
import { runs } from "../../../../test/support/runs.ts";
import { BROKEN } from "./sealed-reader.ts";
import { type LeavableWire, VisionWire } from "./vision-wire.ts";

const ID = Buffer.alloc(16, 7);
const FRESH = new Unpadder(ID).snapshot;
/** As far as the inspector looks. */
const CLIENT_HELLO = Buffer.from("160301000501000001ff", "hex");
/** TYPE VERSION SIZE, TYPE SIZE(3) VERSION RANDOM(32) SESSION(1) CIPHER COMPRESSION, EXTENSIONS: supported_versions. */
const SERVER_HELLO = Buffer.concat([
  Buffer.from("160303005002000000", "hex"),
  Buffer.from("0303", "hex"),
  Buffer.alloc(32, 1),
  Buffer.from("00130100", "hex"),
  Buffer.from("0026002b00020304", "hex"),
  Buffer.alloc(32),
]);
const layer = (some: Partial<VisionLayer>): VisionLayer => ({
  kind: "vision",
  role: "server",
  id: ID,
  mayLeave: false,
  reading: null,
  writing: null,
  ...some,
});

/** Blocks with these contents, the last of which ends the padding, and what comes behind. */
function padded(contents: readonly Uint8Array[], last: Command = END): Buffer {
  const blocks = contents.map((content, at) =>
    encodeBlock(at === 0 ? ID : null, at + 1 < contents.length ? CONTINUE : last, content, false),
  );
  return Buffer.concat([...blocks, Buffer.from("plain behind")]);
}

test("any blocks, begun elsewhere, in any pieces, asked for in any amount", () => {
  const contents = fc.array(fc.uint8Array({ maxLength: 300 }), { minLength: 1, maxLength: 5 });
  const cuts = fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 20 });
  const size = fc.integer({ min: 1, max: 500 });
  const whole = (parts: Uint8Array[], before: number, sizes: number[], bytes: number, asks: boolean) => {
    let wire = padded(parts);
    const got: Buffer[] = [];
    const unpadder = new Unpadder(ID);
    const seen = wire.subarray(0, before);
    const behind = unpadder.take(seen, (content) => void got.push(Buffer.from(content)));
    if (behind !== null) got.push(behind);
    wire = wire.subarray(seen.length);
    const [memory, io] = [new MemoryWire(Buffer.alloc(0)), openIo()];
    const reading = unpadder.state === "padded" ? unpadder.snapshot : null;
    const vision = new VisionWire(memory, null, layer({ reading }));
    for (let turn = 0; wire.length > 0; turn++) {
      memory.arrived = wire.subarray(0, sizes[turn % sizes.length]);
      wire = wire.subarray(memory.arrived.length);
      if (asks) vision.available(io);
      got.push(drain(vision, io, bytes).got);
    }
    assert.equal(String(Buffer.concat(got)), String(Buffer.concat([...parts, Buffer.from("plain behind")])));
    assert.equal(vision.bareSource, memory.bareSource);
  };
  fc.assert(fc.property(contents, fc.nat(400), cuts, size, fc.boolean(), whole), { numRuns: runs(200) });
});

test("what was unpadded and not asked for keeps it readable", () => {
  const [memory, io] = [new MemoryWire(padded([Buffer.from("content")])), openIo()];
  const vision = new VisionWire(memory, null, layer({ reading: FRESH }));
  assert.equal(vision.available(io), "contentplain behind".length);
  vision.readable = false;
  assert.equal(vision.readable, true);
  assert.equal(String(drain(vision, io, 4).got), "contentplain behind");
  assert.equal(vision.readable, false);
});

test("a stream that does not begin with the id is not padded", () => {
  for (const first of ["x", `${ID}`.slice(0, 15)]) {
    const memory = new MemoryWire(Buffer.from(first));
    const vision = new VisionWire(memory, null, layer({ reading: FRESH }));
    const before = drain(vision, openIo(), 3).got;
    memory.arrived = Buffer.from("yz");
    assert.equal(`${before}${drain(vision, openIo(), 3).got}`, `${first}yz`);
  }
});

test("an unknown command is a fault, and so is one that leaves TLS behind", () => {
  const direct = new VisionWire(
    new MemoryWire(padded([Buffer.from("x")], DIRECT)),
    null,
    layer({ reading: FRESH }),
  );
  assert.equal(drain(direct, openIo(), 9_000).last, BROKEN);
  const unknown = new MemoryWire(Buffer.concat([ID, Buffer.of(3, 0, 0, 0, 0)]));
  assert.equal(drain(new VisionWire(unknown, null, layer({ reading: FRESH })), openIo(), 100).last, BROKEN);
});

test("our last block goes out in one piece, what does not fit into it as it is", () => {
  for (const isFirst of [false, true])
    for (const size of [1, 8_000, 12_000]) {
      const [memory, io] = [new MemoryWire(Buffer.alloc(0)), openIo()];
      const vision = new VisionWire(
        memory,
        null,
        layer({ writing: { opening: Buffer.from("opening"), isFirst } }),
      );
      const content = Buffer.alloc(size, "content ");
      let at = 0;
      for (let rest = content; rest.length > 0; rest = rest.subarray(at)) {
        io.calls.buffer.set(rest);
        assert.equal(vision.bareTarget, at === 0 ? -1 : memory.bareTarget);
        at = vision.write(io, rest.length);
        assert.deepEqual(
          Buffer.from(io.calls.buffer.subarray(at, rest.length)),
          rest.subarray(at),
          "what was not taken lies there as it was",
        );
      }
      assert.equal(String(memory.sent.subarray(0, 7)), "opening");
      const got: Buffer[] = [];
      const start = isFirst ? FRESH : { ...FRESH, start: ID };
      const behind = new Unpadder(ID, start).take(memory.sent.subarray(7), (bytes) => void got.push(bytes));
      assert.equal(String(Buffer.concat([...got, behind ?? Buffer.alloc(0)])), String(content));
    }
});

test("where nothing is said, the id and the end of padding are; where something was, the end alone", () => {
  for (const isFirst of [false, true]) {
    const [memory, io] = [new MemoryWire(Buffer.alloc(0)), openIo()];
    const vision = new VisionWire(memory, null, layer({ writing: { opening: Buffer.alloc(0), isFirst } }));
    assert.equal(vision.endWriting(io), 0);
    assert.equal(memory.sent.length > 0, isFirst);
    assert.equal(drain(vision, io, 10).last, EAGAIN);
  }
});

/** TLS that has read so much behind the record with the switch. */
class LeavableMemory extends MemoryWire implements LeavableWire {
  behind: Buffer | null = null;
  hasStayed = false;
  hasLeftWriting = false;

  stay(): void {
    this.hasStayed = true;
  }

  leaveReading(): Buffer | null {
    return this.behind;
  }

  leaveWriting(): void {
    this.hasLeftWriting = true;
  }
}

/** As a client's that has said nothing yet. */
function openLeavable(arrived: Buffer) {
  const memory = new LeavableMemory(arrived);
  const io = openIo();
  const calls = { receive: () => EAGAIN, buffer: io.calls.buffer };
  const writing = { opening: Buffer.from("opening"), afterMs: 0, isFirst: true };
  const first = layer({ role: "client", mayLeave: true, reading: FIRST_BLOCK, writing });
  const vision = new VisionWire(memory, memory, first);
  return { memory, vision, io: { ...io, calls: calls as unknown as RelayCalls } };
}

test("what was read behind the switch comes behind the content, however little is asked for", () => {
  for (const behind of [null, Buffer.from(" bare")])
    for (const size of [3, 9_000])
      for (const asks of [false, true]) {
        const { memory, vision, io } = openLeavable(
          padded([Buffer.from("one "), Buffer.from("two ")], DIRECT),
        );
        memory.behind = behind;
        const asked = asks ? vision.available(io) : 1;
        assert.ok(asked > 0);
        assert.equal(vision.bareSource, -1);
        assert.equal(String(drain(vision, io, size).got), `one two plain behind${behind ?? ""}`);
        assert.equal(vision.bareSource, memory.fd);
        assert.equal(vision.bareTarget, -1, "our direction is still padded");
        assert.equal(memory.hasStayed, false);
      }
});

test("a request whose time has come goes with an empty block, and with the peer's last one ours ends, too", () => {
  const { memory, vision, io } = openLeavable(padded([Buffer.from("x")]));
  assert.equal(vision.pending, true);
  assert.equal(vision.flush(io), memory.sent.length);
  assert.equal(vision.pending, false);
  const [request, rest] = [memory.sent.subarray(0, 7), memory.sent.subarray(7)];
  assert.equal(String(request), "opening");
  assert.deepEqual([rest.subarray(0, 16), rest[16], rest.readUInt16BE(17)], [ID, CONTINUE, 0]);
  memory.sent = Buffer.alloc(0);
  drain(vision, io, 9_000);
  assert.equal(memory.hasStayed, true);
  assert.equal(vision.pending, true);
  vision.flush(io);
  assert.deepEqual([memory.sent[0], memory.sent.readUInt16BE(1)], [END, 0]);
  assert.equal(vision.pending, false);
  assert.equal(vision.bareTarget, memory.bareTarget);
});

test("a TLS 1.3 handshake inside is padded, and what follows is bare", () => {
  const { memory, vision, io } = openLeavable(padded([SERVER_HELLO], CONTINUE).subarray(0, -12));
  const write = (bytes: Buffer): number => {
    io.calls.buffer.set(bytes);
    return vision.write(io, bytes.length);
  };
  assert.equal(write(CLIENT_HELLO), CLIENT_HELLO.length);
  assert.equal(drain(vision, io, 9_000).got.length, SERVER_HELLO.length);
  memory.sent = Buffer.alloc(0);
  const record = Buffer.from("17030300045678ffff", "hex");
  assert.equal(write(Buffer.concat([record, Buffer.from("bare")])), record.length);
  assert.deepEqual([memory.sent[0], memory.sent.readUInt16BE(1)], [DIRECT, record.length]);
  assert.equal(String(Buffer.from(io.calls.buffer).subarray(record.length, record.length + 4)), "bare");
  assert.equal(memory.hasLeftWriting, true);
  assert.equal(vision.bareTarget, memory.fd);
});
