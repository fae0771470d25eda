/** The decoder of the port against every kind of input, without sockets: memory in place of the kernel. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Evp } from "#platform/linux/evp.ts";
import { EAGAIN, EINTR, HANGUP, READABLE, type RelayCalls, WRITABLE } from "#platform/linux/relay-calls.ts";
import type { TaskIo } from "#dataplane/workers/worker/task.ts";
import { runs } from "../../../../test/support/runs.ts";
import { cipherMemory, MemorySocket, PLAIN_BYTES } from "../../../../test/support/memory-socket.ts";
import { SharedSalts } from "#lib/shared-salts.ts";
import { ShadowsocksAnswer } from "./shadowsocks-answer.ts";
import { ShadowsocksWire } from "./shadowsocks.ts";
import { SocketBelow } from "./sealed-below.ts";
import { BROKEN } from "./sealed-reader.ts";

const evp = Evp.open();
const skip = evp === null ? "SKIP sealed port: needs Linux and libcrypto by FFI" : false;
const KEY = Buffer.alloc(16, 7);
const [SEAL, OPEN] = [1, 0];

interface Bench {
  readonly port: ShadowsocksWire;
  readonly socket: MemorySocket;
  readonly io: TaskIo;
  readonly spared: () => boolean;
}

function openBench({
  chunkBytes = 0x3fff,
  payloadBytes = -1,
  unread = null as Uint8Array | null,
} = {}): Bench {
  const socket = new MemorySocket();
  const { memory } = socket;
  const contexts = [OPEN, SEAL].map((way) => Number(memory.evp.openContext("aes-128-gcm", KEY, way)));
  const words = [...contexts, 3, 5, chunkBytes, payloadBytes, 1];
  let spared = false;
  const word = (at: number): number => words[at] as number;
  const port = new ShadowsocksWire(memory, new SocketBelow(memory, 9), {
    word,
    unread,
    details: undefined,
    keep: () => {},
    spare: () => void (spared = true),
  });
  const io = { calls: socket as unknown as RelayCalls, bufferedBytes: 0 } as TaskIo;
  return { port, socket, io, spared: () => spared };
}

/** Chunks as a peer seals them whose nonce counts from `count`. */
function sealed(pieces: readonly Uint8Array[], count = 3, lie?: number): Buffer {
  using cipher = (evp as Evp).keep("aes-128-gcm", KEY);
  const nonce = Buffer.alloc(12);
  const parts = pieces.flatMap((piece) => {
    const length = Buffer.alloc(2);
    length.writeUInt16BE(lie ?? piece.length);
    return [length, piece].map((part) => {
      const out = Buffer.alloc(part.length + 16);
      nonce.writeUIntLE(count++, 0, 6);
      cipher.sealInto(out, 0, nonce, part);
      return out;
    });
  });
  return Buffer.concat(parts);
}

/** Reads until nothing more comes; the last answer says why. */
function drain({ port, io, socket }: Bench, size: number): { text: Buffer; last: number } {
  const got: Buffer[] = [];
  for (let steps = 0; ; steps++) {
    assert.ok(steps < 100_000, "it gets no further");
    const bytes = port.read(io, size);
    assert.ok(bytes <= size);
    if (bytes > 0) got.push(Buffer.from(socket.memory.plain.subarray(0, bytes)));
    else if (bytes !== EINTR) return { text: Buffer.concat(got), last: bytes };
    if (!port.readable) return { text: Buffer.concat(got), last: EAGAIN };
  }
}

test("of chunks that are as long as before only whole ones are asked for", { skip }, () => {
  const bench = openBench({ chunkBytes: 0xffff });
  const chunk = Buffer.alloc(32 * 1024, "0123456789abcdef-");
  bench.socket.arrived = sealed(Array.from({ length: 40 }, () => chunk));
  assert.ok(bench.port.read(bench.io, PLAIN_BYTES) > 0, "the first read learns how long they are");
  const fit = Math.floor(PLAIN_BYTES / chunk.length);
  for (let left = bench.socket.arrived.length; left > 0; left = bench.socket.arrived.length) {
    const bytes = bench.port.read(bench.io, PLAIN_BYTES);
    assert.equal(bench.socket.arrived.length % (chunk.length + 34), 0);
    assert.ok(bench.socket.arrived.length === 0 || bytes === fit * chunk.length);
  }
  bench.port.drop(bench.io);
});

test("any chunks, in any pieces, asked for in any amount", { skip }, () => {
  const pieces = fc.array(fc.uint8Array({ maxLength: 3000 }), { maxLength: 12 });
  const cuts = fc.array(fc.integer({ min: 1, max: 4000 }), { minLength: 1, maxLength: 40 });
  fc.assert(
    fc.property(
      pieces,
      cuts,
      fc.integer({ min: 1, max: 5000 }),
      fc.boolean(),
      (chunks, sizes, size, asks) => {
        const bench = openBench();
        let wire = sealed(chunks);
        const got: Buffer[] = [];
        for (let turn = 0; wire.length > 0; turn++) {
          bench.socket.arrived = wire.subarray(0, sizes[turn % sizes.length]);
          wire = wire.subarray(bench.socket.arrived.length);
          bench.port.onEvents(READABLE);
          if (asks) assert.ok(bench.port.available(bench.io) !== 0);
          if (bench.port.readable) got.push(drain(bench, size).text);
        }
        assert.deepEqual(Buffer.concat(got), Buffer.concat(chunks));
        assert.ok(!bench.port.readable || chunks.length === 0);
        bench.socket.ended = true;
        bench.port.onEvents(READABLE | HANGUP);
        assert.deepEqual(drain(bench, size), { text: Buffer.alloc(0), last: 0 });
        bench.port.drop(bench.io);
      },
    ),
    { numRuns: runs(150) },
  );
});

test("an end is an end between two chunks, and a fault everywhere else", { skip }, () => {
  const wire = sealed([Buffer.from("first"), Buffer.from("second")]);
  const whole = sealed([Buffer.from("first")]).length;
  for (let size = 0; size <= wire.length; size++) {
    const bench = openBench();
    bench.socket.arrived = wire.subarray(0, size);
    bench.socket.ended = true;
    bench.port.onEvents(READABLE | HANGUP);
    const { text, last } = drain(bench, PLAIN_BYTES);
    assert.equal(text.toString(), size < whole ? "" : size < wire.length ? "first" : "firstsecond");
    assert.equal(last, [0, whole, wire.length].includes(size) ? 0 : BROKEN, `after ${size} bytes`);
    assert.equal(bench.spared(), last === BROKEN);
    bench.port.drop(bench.io);
  }
});

test("a changed bit ends it, whatever came before is given first, and nothing after", { skip }, () => {
  const wire = sealed([Buffer.from("first"), Buffer.from("second"), Buffer.from("third")]);
  const whole = sealed([Buffer.from("first")]).length;
  for (let at = 0; at < wire.length; at++) {
    const bench = openBench();
    const changed = Buffer.from(wire);
    changed[at] = (changed[at] as number) ^ (1 << (at & 7));
    bench.socket.arrived = changed;
    const { text, last } = drain(bench, PLAIN_BYTES);
    assert.equal(last, BROKEN);
    assert.equal("firstsecondthird".startsWith(text.toString()), true);
    assert.equal(text.length, at < whole ? 0 : at < whole + sealed([Buffer.from("second")]).length ? 5 : 11);
    bench.socket.arrived = wire;
    bench.port.onEvents(READABLE);
    assert.equal(bench.port.read(bench.io, 9), BROKEN);
    assert.equal(bench.port.available(bench.io), BROKEN);
    bench.port.drop(bench.io);
  }
});

test("lengths that the edition does not know", { skip }, () => {
  for (const lie of [0x4000, 0x8000, 0xffff]) {
    const bench = openBench();
    bench.socket.arrived = sealed([Buffer.from("first")], 3, lie);
    assert.deepEqual(drain(bench, PLAIN_BYTES), { text: Buffer.alloc(0), last: BROKEN });
    bench.port.drop(bench.io);
  }
  const large = Buffer.alloc(0xffff, "large");
  for (const size of [1000, PLAIN_BYTES]) {
    const bench = openBench({ chunkBytes: 0xffff });
    bench.socket.arrived = sealed([large, large, large, large, large]);
    assert.ok(drain(bench, size).text.equals(Buffer.concat([large, large, large, large, large])));
    bench.port.drop(bench.io);
  }
});

test("noise is a fault or a wait", { skip }, () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (noise) => {
      const bench = openBench();
      bench.socket.arrived = Buffer.from(noise);
      assert.equal(drain(bench, 100).last, noise.length < 18 ? EAGAIN : BROKEN);
      bench.port.drop(bench.io);
    }),
  );
});

test("goes on in the middle of a chunk, with what was read before", { skip }, () => {
  const wire = sealed([Buffer.from("payload"), Buffer.from("next")], 2);
  const bench = openBench({ payloadBytes: 7, unread: wire.subarray(18, 30) });
  assert.equal(bench.port.read(bench.io, 100), EAGAIN);
  bench.socket.arrived = wire.subarray(30);
  bench.port.onEvents(READABLE);
  assert.equal(drain(bench, 100).text.toString(), "payloadnext");
  bench.port.drop(bench.io);
});

test("what a socket does not take is kept, counted, and goes first", { skip }, () => {
  const plain = Buffer.alloc(100_000, "abcdefghijk");
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 60_000 }), { maxLength: 10 }), (rooms) => {
      const bench = openBench();
      const { port, socket, io } = bench;
      socket.memory.plain.set(plain);
      socket.room = 0;
      assert.equal(port.write(io, plain.length), plain.length);
      assert.ok(port.pending && !port.writable && io.bufferedBytes > plain.length);
      for (const room of [...rooms, Infinity]) {
        socket.room = room;
        port.onEvents(WRITABLE);
        const sent = port.flush(io);
        assert.equal(sent, room === 0 ? EAGAIN : sent);
        if (!port.pending) break;
        assert.ok(!port.writable);
      }
      assert.equal(port.pending, false);
      assert.equal(io.bufferedBytes, 0);
      const { socket: other, ...reader } = { ...openBench(), io };
      other.arrived = rewind(socket.sent);
      const back = { ...reader, socket: other, io: { ...io, calls: other as unknown as RelayCalls } };
      assert.ok(drain(back, PLAIN_BYTES).text.equals(plain));
      port.drop(io);
      back.port.drop(io);
    }),
    { numRuns: 20 },
  );
});

/** What was sealed from message 5 on, as if it had been from 3 on. */
function rewind(wire: Buffer): Buffer {
  using cipher = (evp as Evp).keep("aes-128-gcm", KEY);
  const nonce = Buffer.alloc(12);
  const pieces: Buffer[] = [];
  for (let at = 0, count = 5; at < wire.length; count += 2) {
    const length = Buffer.alloc(2);
    nonce.writeUIntLE(count, 0, 6);
    assert.equal(cipher.openInto(length, 0, nonce, wire.subarray(at, at + 18)), 2);
    const piece = Buffer.alloc(length.readUInt16BE());
    nonce.writeUIntLE(count + 1, 0, 6);
    const end = at + 18 + piece.length + 16;
    assert.equal(cipher.openInto(piece, 0, nonce, wire.subarray(at + 18, end)), piece.length);
    assert.ok(piece.length <= 0x3fff);
    pieces.push(piece);
    at = end;
  }
  return sealed(pieces);
}

test("an answer with a salt that came before is none, whichever thread has seen it", { skip }, () => {
  const memory = cipherMemory();
  const answer = { cipher: "aes-128-gcm", key: Buffer.alloc(16, 3) } as const;
  const details = { answer, salt: null, requestSalt: null, salts: new SharedSalts().memory, clockAheadMs: 0 };
  const opens = (): boolean => {
    const one = new ShadowsocksAnswer(answer, details);
    const isTaken = one.open(memory, 0);
    memory.evp.free({ sealing: 0n, opening: one.context });
    return isTaken;
  };
  memory.wire.set(Buffer.alloc(16, 5));
  assert.equal(opens(), true);
  assert.equal(opens(), false);
  memory.wire.set(Buffer.alloc(16, 6));
  assert.equal(opens(), true);
});
