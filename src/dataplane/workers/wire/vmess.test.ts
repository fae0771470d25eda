/** The chunks of VMess against every kind of input, without sockets: memory in place of the kernel. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { VmessDetails } from "#core/wire-details.ts";
import { Evp } from "#platform/linux/evp.ts";
import { EAGAIN, EINTR, HANGUP, READABLE, type RelayCalls, WRITABLE } from "#platform/linux/relay-calls.ts";
import { VmessCodec } from "#protocols/vmess/codec.ts";
import {
  COMMAND_TCP,
  OPTION_AUTHENTICATED_LENGTH,
  OPTION_CHUNKS,
  OPTION_MASKING,
  OPTION_PADDING,
  type RequestHeader,
  SECURITY_AES,
  SECURITY_CHACHA,
} from "#protocols/vmess/header.ts";
import type { TaskIo } from "#dataplane/workers/worker/task.ts";
import { MemorySocket } from "../../../../test/support/memory-socket.ts";
import { runs } from "../../../../test/support/runs.ts";
import { SocketBelow } from "./sealed-below.ts";
import { BROKEN } from "./sealed-reader.ts";
import { VmessWire } from "./vmess.ts";

const skip = Evp.open() === null ? "SKIP VMess in a worker: needs Linux and libcrypto by FFI" : false;
const ALL = OPTION_CHUNKS | OPTION_MASKING | OPTION_PADDING | OPTION_AUTHENTICATED_LENGTH;
const FORMS = [
  { options: OPTION_CHUNKS | OPTION_MASKING, security: SECURITY_AES },
  { options: OPTION_CHUNKS | OPTION_MASKING | OPTION_PADDING, security: SECURITY_CHACHA },
  { options: ALL, security: SECURITY_AES },
] as const;
type Form = (typeof FORMS)[number];

interface Bench {
  readonly wire: VmessWire;
  readonly socket: MemorySocket;
  readonly io: TaskIo;
  /** The other end, in the event loop. */
  readonly peer: VmessCodec;
  readonly isSpared: () => boolean;
}

const REQUEST = Buffer.from("the request in front of it");

/** `side`: what the wire is. A client's request has gone out, with what it said in the event loop. */
function openBench(form: Form = FORMS[0], side: "client" | "server" = "client", said = ""): Bench {
  const request: RequestHeader = {
    iv: Buffer.alloc(16, 3),
    key: Buffer.alloc(16, 5),
    verifier: 9,
    ...form,
    command: COMMAND_TCP,
    destination: null,
  };
  const [client, server] = [new VmessCodec(request, REQUEST), new VmessCodec(request, null)];
  const first = client.seal(Buffer.from(said));
  server.open(first.subarray(REQUEST.length), () => {});
  const [own, peer] = side === "client" ? [client, server] : [server, client];
  const socket = new MemorySocket();
  const { numbers, unread, details } = (assert.ok(own.canDepart), own.depart(true));
  let isSpared = false;
  const wire = new VmessWire(socket.memory, new SocketBelow(socket.memory, 9), {
    word: (at) => numbers[at] as number,
    unread,
    details: structuredClone(details?.vmess) as VmessDetails,
    spare: () => void (isSpared = true),
  });
  const io = { calls: socket as unknown as RelayCalls, bufferedBytes: 0 } as TaskIo;
  return { wire, socket, io, peer, isSpared: () => isSpared };
}

/** Reads until nothing more comes; the last answer says why. */
function drain({ wire, io, socket }: Bench, size: number): { text: Buffer; last: number } {
  const got: Buffer[] = [];
  for (let steps = 0; ; steps++) {
    assert.ok(steps < 100_000, "it gets no further");
    const bytes = wire.read(io, size);
    assert.ok(bytes <= size);
    if (bytes > 0) got.push(Buffer.from(socket.memory.plain.subarray(0, bytes)));
    else if (bytes !== EINTR) return { text: Buffer.concat(got), last: bytes };
    if (!wire.readable) return { text: Buffer.concat(got), last: EAGAIN };
  }
}

/** What the other end reads of it; null: its end mark. */
function opened(peer: VmessCodec, wire: Buffer): (string | null)[] {
  const got: (string | null)[] = [];
  peer.open(wire, (plain) => void got.push(plain === null ? null : String(plain)));
  return got;
}

for (const [index, form] of FORMS.entries())
  for (const side of ["client", "server"] as const)
    test(`form ${index}, ${side}: any chunks, in any pieces, asked for in any amount`, { skip }, () => {
      const pieces = fc.array(fc.uint8Array({ minLength: 1, maxLength: 20_000 }), { maxLength: 6 });
      const cuts = fc.array(fc.integer({ min: 1, max: 9_000 }), { minLength: 1, maxLength: 30 });
      const whole = (parts: readonly Uint8Array[], sizes: readonly number[], size: number, asks: boolean) => {
        const bench = openBench(form, side, "said before");
        let sealed = Buffer.concat([...parts.map((part) => bench.peer.seal(Buffer.from(part))), end(bench)]);
        const got: Buffer[] = [];
        for (let turn = 0; sealed.length > 0; turn++) {
          bench.socket.arrived = sealed.subarray(0, sizes[turn % sizes.length]);
          sealed = sealed.subarray(bench.socket.arrived.length);
          bench.wire.onEvents(READABLE);
          if (asks) bench.wire.available(bench.io);
          if (bench.wire.readable) got.push(drain(bench, size).text);
        }
        assert.deepEqual(Buffer.concat(got), Buffer.concat(parts));
        assert.deepEqual(drain(bench, size), { text: Buffer.alloc(0), last: 0 });
        bench.wire.drop(bench.io);
      };
      const size = fc.integer({ min: 1, max: 30_000 });
      fc.assert(fc.property(pieces, cuts, size, fc.boolean(), whole), { numRuns: runs(40) });
    });

const end = ({ peer }: Bench): Buffer => peer.sealEnd() ?? Buffer.alloc(0);

/** LENGTH(2) TAG(16) HEADER(4) TAG(16). */
const RESPONSE_BYTES = 38;

test("an end without its mark is one between two chunks, and a fault everywhere else", { skip }, () => {
  const example = openBench();
  const header = example.peer.seal(Buffer.from("first")).length;
  const size = header + example.peer.seal(Buffer.from("second")).length;
  example.wire.drop(example.io);
  for (let cut = 0; cut <= size; cut++) {
    const bench = openBench();
    const sealed = Buffer.concat(["first", "second"].map((text) => bench.peer.seal(Buffer.from(text))));
    bench.socket.arrived = sealed.subarray(0, cut);
    bench.socket.ended = true;
    bench.wire.onEvents(READABLE | HANGUP);
    const { text, last } = drain(bench, 100);
    assert.equal(String(text), cut < header ? "" : cut < size ? "first" : "firstsecond");
    assert.equal(last, [RESPONSE_BYTES, header, size].includes(cut) ? 0 : BROKEN, `after ${cut} bytes`);
    assert.equal(bench.isSpared(), last === BROKEN);
    bench.wire.drop(bench.io);
  }
});

test("a changed bit gives nothing of its chunk nor of any behind it", { skip }, () => {
  for (const form of FORMS) {
    const example = openBench(form);
    const first = example.peer.seal(Buffer.from("first")).length;
    const size = first + example.peer.seal(Buffer.from("second")).length;
    example.wire.drop(example.io);
    for (let at = 0; at < size; at++) {
      const bench = openBench(form);
      const sealed = Buffer.concat(
        ["first", "second", "third"].map((text) => bench.peer.seal(Buffer.from(text))),
      );
      sealed[at] = (sealed[at] as number) ^ (1 << (at & 7));
      bench.socket.arrived = sealed;
      bench.socket.ended = true; // a size that grew waits for what does not come
      bench.wire.onEvents(READABLE | HANGUP);
      const { text, last } = drain(bench, 100);
      const isPadding = last === 0; // which nothing authenticates
      assert.ok(isPadding ? String(text) === "firstsecondthird" : last === BROKEN, `${last} at ${at}`);
      if (!isPadding) assert.equal(String(text), at < first ? "" : "first");
      bench.wire.drop(bench.io);
    }
  }
});

test("a response to another request is a fault", { skip }, () => {
  const [bench, other] = [openBench(), openBench(FORMS[1])];
  bench.socket.arrived = other.peer.seal(Buffer.from("x")).subarray(0, 18);
  bench.socket.arrived = Buffer.concat([bench.socket.arrived, Buffer.alloc(40)]);
  assert.deepEqual(drain(bench, 100), { text: Buffer.alloc(0), last: BROKEN });
  for (const one of [bench, other]) one.wire.drop(one.io);
});

test("noise is a fault or a wait", { skip }, () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (noise) => {
      const bench = openBench();
      bench.socket.arrived = Buffer.from(noise);
      const { text, last } = drain(bench, 100);
      assert.equal(text.length, 0);
      assert.equal(last, noise.length < 18 ? EAGAIN : BROKEN);
      bench.wire.drop(bench.io);
    }),
    { numRuns: runs(60) },
  );
});

for (const side of ["client", "server"] as const)
  test(
    `${side}: what a socket does not take is kept, counted, and goes first; the end goes last`,
    { skip },
    () => {
      const plain = Buffer.alloc(100_000, "abcdefghijk");
      fc.assert(
        fc.property(fc.array(fc.integer({ min: 0, max: 60_000 }), { maxLength: 10 }), (rooms) => {
          const bench = openBench(FORMS[2], side, "said before");
          const { wire, socket, io } = bench;
          socket.memory.plain.set(plain);
          socket.room = 0;
          assert.equal(wire.write(io, plain.length), plain.length);
          assert.ok(wire.pending && !wire.writable && io.bufferedBytes > plain.length);
          for (const room of [...rooms, Infinity]) {
            socket.room = room;
            wire.onEvents(WRITABLE);
            if (wire.flush(io) === EAGAIN) assert.equal(room, 0);
            if (!wire.pending) break;
          }
          assert.equal(io.bufferedBytes, 0);
          socket.room = 3;
          assert.equal(wire.endWriting(io), EAGAIN);
          assert.equal(socket.hasEnded, false);
          socket.room = Infinity;
          wire.onEvents(WRITABLE);
          assert.ok(wire.flush(io) > 0);
          assert.equal(wire.endWriting(io), 0);
          assert.equal(socket.hasEnded, true);
          const got = opened(bench.peer, socket.sent);
          assert.equal(got.at(-1), null);
          assert.ok(Buffer.from(got.slice(0, -1).join("")).equals(plain));
          wire.drop(io);
        }),
        { numRuns: 15 },
      );
    },
  );

test("a server that has said nothing ends by its response and the mark", { skip }, () => {
  const bench = openBench(FORMS[0], "server");
  assert.equal(bench.wire.endWriting(bench.io), 0);
  assert.deepEqual(opened(bench.peer, bench.socket.sent), [null]);
  bench.wire.drop(bench.io);
});

test("a client's first chunk is short", { skip }, () => {
  const bench = openBench();
  bench.socket.memory.plain.fill(1, 0, 9_000);
  assert.equal(bench.wire.write(bench.io, 9_000), 9_000);
  const sizes: number[] = [];
  bench.peer.open(
    bench.socket.sent.subarray(0, 2 + 2048 + 16),
    (plain) => void sizes.push(plain?.length ?? 0),
  );
  assert.deepEqual(sizes, [2048]);
  bench.wire.drop(bench.io);
});

test(
  "a stream whose end has been read stays, also while what came in front of the end is handed on",
  { skip },
  () => {
    const { peer, ...bench } = openBench(FORMS[0], "client");
    const request = { iv: Buffer.alloc(16, 3), key: Buffer.alloc(16, 5), verifier: 9, ...FORMS[0] };
    const codec = new VmessCodec({ ...request, command: COMMAND_TCP, destination: null }, REQUEST);
    codec.seal(Buffer.from("asked"));
    assert.equal(codec.canDepart, true);
    const stays: boolean[] = [];
    codec.open(Buffer.concat([peer.seal(Buffer.from("last")), peer.sealEnd() ?? Buffer.alloc(0)]), () => {
      stays.push(!codec.canDepart);
    });
    assert.deepEqual(stays, [true, true]);
    codec.close();
    bench.wire.drop(bench.io);
  },
);

test("without a cipher a server's response is all there is to add", () => {
  const request = { iv: Buffer.alloc(16), key: Buffer.alloc(16), verifier: 1, destination: null };
  const codec = new VmessCodec({ ...request, options: 0, security: 5, command: COMMAND_TCP }, null);
  assert.equal(codec.canDepart, false);
  const { ours = null, theirs } = codec.layer ?? {};
  assert.deepEqual([ours?.length, theirs, codec.bare], [38, null, false]);
  codec.seal(Buffer.from("x"));
  assert.deepEqual([codec.layer, codec.bare], [null, true]);
});
