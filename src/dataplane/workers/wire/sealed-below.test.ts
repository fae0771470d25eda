/** Chunks of VMess over a wire that is more than a socket: it gives and takes as it likes, and uses the same memory. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Evp } from "#platform/linux/evp.ts";
import { EAGAIN, type RelayCalls } from "#platform/linux/relay-calls.ts";
import { VmessCodec } from "#protocols/vmess/codec.ts";
import { COMMAND_TCP, OPTION_CHUNKS, OPTION_MASKING, SECURITY_AES } from "#protocols/vmess/header.ts";
import { drain, MemoryWire } from "../../../../test/support/memory-wire.ts";
import { cipherMemory } from "../../../../test/support/memory-socket.ts";
import { runs } from "../../../../test/support/runs.ts";
import { openSealed } from "./open-sealed.ts";
import { WireBelow } from "./sealed-below.ts";
import type { Wire, WireIo } from "./wire.ts";
import { VMESS } from "#dataplane/workers/shared/wire-spec.ts";

const skip = Evp.open() === null ? "SKIP sealed wires: needs Linux and libcrypto by FFI" : false;
const REQUEST = Buffer.from("the request in front of it");

/** It holds back what its writes give it for as long as `held` says, and says that it waits for the peer's silence. */
class BusyWire extends MemoryWire {
  held = 0;
  isUnwanted = false;
  #waiting: Buffer = Buffer.alloc(0);

  override get pending(): boolean {
    return this.#waiting.length > 0;
  }

  override read(io: WireIo, size: number): number {
    cipherMemory().wire.fill(0xee);
    const bytes = super.read(io, size);
    this.readable = this.arrived.length > 0;
    return bytes;
  }

  override write(io: WireIo, size: number): number {
    cipherMemory().wire.fill(0xdd);
    this.#waiting = Buffer.from(io.calls.buffer.subarray(0, size));
    this.flush();
    return size;
  }

  override flush = (): number => {
    this.writable = this.held === 0;
    if (this.held-- > 0) return EAGAIN;
    const bytes = this.#waiting.length;
    this.sent = Buffer.concat([this.sent, this.#waiting]);
    this.#waiting = Buffer.alloc(0);
    this.held = 0;
    return bytes;
  };

  onUnwanted(): void {
    this.isUnwanted = true;
  }
}

interface Opened {
  readonly wire: Wire;
  readonly below: BusyWire;
  readonly io: WireIo;
  readonly peer: VmessCodec;
}

/** A client's wire whose request is out, and that is given `unread` of its peer's. */
function open(unread: Uint8Array | null = null): Opened {
  const request = {
    iv: Buffer.alloc(16, 3),
    key: Buffer.alloc(16, 5),
    verifier: 9,
    options: OPTION_CHUNKS | OPTION_MASKING,
    security: SECURITY_AES,
    command: COMMAND_TCP,
    destination: null,
  };
  const [client, peer] = [new VmessCodec(request, REQUEST), new VmessCodec(request, null)];
  client.seal(Buffer.alloc(0));
  const { numbers, details = {} } = client.depart(false);
  const memory = cipherMemory();
  const below = new BusyWire(Buffer.alloc(0));
  const word = (at: number): number => numbers[at] ?? 0;
  const start = { word, unread, details: structuredClone(details), keep() {}, spare() {} };
  const wire = openSealed(VMESS, memory, new WireBelow(memory, below), start) ?? assert.fail("no wire");
  const io = {
    calls: { buffer: memory.plain } as unknown as RelayCalls,
    bufferedBytes: 0,
    wakeAtMs: Infinity,
  };
  return { wire, below, io, peer };
}

const read = (peer: VmessCodec, wire: Buffer): Buffer => {
  const got: Buffer[] = [];
  peer.open(wire, (plain) => void (plain !== null && got.push(Buffer.from(plain))));
  return Buffer.concat(got);
};

const parts = fc.array(fc.uint8Array({ minLength: 1, maxLength: 20_000 }), { maxLength: 6 });
const cuts = fc.array(fc.integer({ min: 1, max: 9_000 }), { minLength: 1, maxLength: 20 });

test("what comes in any pieces is read, though the wire below uses the same memory", { skip }, () => {
  const comes = (blocks: readonly Uint8Array[], sizes: readonly number[], size: number): void => {
    const { wire, below, io, peer } = open();
    let sealed = Buffer.concat(blocks.map((block) => peer.seal(Buffer.from(block))));
    const got: Buffer[] = [];
    for (let turn = 0; sealed.length > 0; turn++) {
      below.arrived = sealed.subarray(0, sizes[turn % sizes.length]);
      sealed = sealed.subarray(below.arrived.length);
      below.readable = true;
      got.push(drain(wire, io, size).got);
      assert.ok(!wire.readable, "nothing is left that no event would tell of");
    }
    assert.deepEqual(Buffer.concat(got), Buffer.concat(blocks));
    wire.drop(io);
  };
  fc.assert(fc.property(parts, cuts, fc.integer({ min: 1, max: 30_000 }), comes), { numRuns: runs(40) });
});

test("what was read before there was a wire is there, though nothing more comes", { skip }, () => {
  const sealed = open().peer.seal(Buffer.from("all"));
  const { wire, below, io } = open(sealed);
  below.readable = false; // as it is of a plain socket until an event tells of it
  assert.ok(wire.readable);
  assert.deepEqual(drain(wire, io, 100).got, Buffer.from("all"));
  assert.ok(!wire.readable);
  wire.drop(io);
});

test("what is written arrives, however long the wire below holds it back", { skip }, () => {
  const goes = (blocks: readonly Uint8Array[], holds: readonly number[]): void => {
    const { wire, below, io, peer } = open();
    for (const [at, block] of blocks.entries()) {
      below.held = holds[at % holds.length] ?? 0;
      io.calls.buffer.set(block);
      assert.equal(wire.write(io, block.length), block.length);
      for (let tries = 0; wire.pending; tries++) {
        assert.ok(tries < 100, "it is never passed on");
        wire.flush(io);
      }
    }
    assert.deepEqual(read(peer, below.sent), Buffer.concat(blocks));
    assert.equal(io.bufferedBytes, 0);
    wire.drop(io);
  };
  const holds = fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 5 });
  fc.assert(fc.property(parts, holds, goes), { numRuns: runs(40) });
});

test("behind the peer's end what still comes below means nothing, and is read", { skip }, () => {
  const { wire, below, io, peer } = open();
  below.arrived = Buffer.concat([peer.seal(Buffer.from("all")), peer.sealEnd() ?? assert.fail("no mark")]);
  assert.deepEqual(drain(wire, io, 100), { got: Buffer.from("all"), last: 0 });
  below.arrived = Buffer.from("a close frame");
  below.readable = true;
  assert.equal(wire.endWriting(io), 0);
  assert.equal(below.arrived.length, 0);
  assert.ok(below.isUnwanted, "an end that waits for silence would wait for ever");
  wire.drop(io);
});
