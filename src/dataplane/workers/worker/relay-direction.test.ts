/** The turns of one direction, between wires of memory. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { MORE, type TaskIo } from "./task.ts";
import { RelayDirection } from "./relay-direction.ts";
import type { Wire } from "#dataplane/workers/wire/wire.ts";
import { Readiness } from "#dataplane/workers/wire/readiness.ts";

/** It always has a byte more, and takes whatever it is given. */
class Trickle extends Readiness implements Wire {
  readonly pending = false;
  readonly fd = -1;
  reads = 0;
  /** Of each piece. */
  bytes = 1;
  readonly #busyMs: number;

  /** How long the thread opens each piece. */
  constructor(busyMs = 0) {
    super();
    this.#busyMs = busyMs;
  }

  read(): number {
    this.reads++;
    for (const untilMs = performance.now() + this.#busyMs; performance.now() < untilMs;);
    return this.bytes;
  }

  available(): number {
    return 1;
  }

  write(_io: TaskIo, size: number): number {
    return size;
  }

  flush(): number {
    return 0;
  }

  endWriting(): number {
    return 0;
  }

  drop(): void {}
}

function newIo(): TaskIo {
  return { counts: new Float64Array(1), bufferedBytes: 0 } as unknown as TaskIo;
}

test("a peer that sends one byte in each piece has no longer turns than others", () => {
  const from = new Trickle();
  const io = newIo();
  assert.equal(new RelayDirection(from, new Trickle(), 0).run(io, false), MORE);
  assert.ok(from.reads <= 64, `${from.reads} reads in one turn`);
  assert.equal(io.counts[0], from.reads);
});

test("neither has one whose receiver has gone, and whose pieces take long to open", () => {
  const from = new Trickle(4);
  const direction = new RelayDirection(from, new Trickle(), 0);
  direction.isAbandoned = true;
  assert.equal(direction.run(newIo(), false), MORE);
  assert.ok(from.reads <= 8, `${from.reads} reads in one turn`);
});

test("in bulk, of which a peer puts little into each of its long pieces, no longer either", () => {
  const [from, io] = [new Trickle(4), newIo()];
  const direction = new RelayDirection(from, new Trickle(), 0);
  from.bytes = 64 * 1024;
  assert.equal(direction.run(io, false), MORE);
  from.bytes = 1;
  from.reads = 0;
  assert.equal(direction.run(io, false), MORE);
  assert.ok(from.reads <= 4, `${from.reads} reads in one turn`);
});

test("neither has one whose pieces take long to open", () => {
  const from = new Trickle(4);
  assert.equal(new RelayDirection(from, new Trickle(), 0).run(newIo(), false), MORE);
  assert.ok(from.reads <= 8, `${from.reads} reads in one turn`);
});
