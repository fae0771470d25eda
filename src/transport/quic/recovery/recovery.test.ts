import assert from "node:assert/strict";
import { test } from "node:test";
import type { Congestion } from "#transport/quic/congestion/congestion.ts";
import { WireReader } from "#transport/quic/wire/reader.ts";
import { WireWriter } from "#transport/quic/wire/writer.ts";
import { APPLICATION_SPACE, PacketSpace } from "./packet-space.ts";
import { Recovery } from "./recovery.ts";

/** Packets of one space, sent and acknowledged by hand; what congestion control is told of losses. */
class Path {
  readonly told: boolean[] = [];
  readonly #space = new PacketSpace(APPLICATION_SPACE);
  readonly #recovery: Recovery;

  constructor() {
    const congestion: Congestion = {
      windowBytes: 100_000,
      pacingRate: Infinity,
      setDatagramBytes() {},
      onSent() {},
      onAck() {},
      onMarked() {},
      onLost: (_nowMs, _bytes, _newestMs, isPersistent) => void this.told.push(isPersistent),
    };
    this.#recovery = new Recovery(congestion, { onAcked() {}, onLost() {} });
    this.#recovery.probes.isConfirmed = true;
  }

  send(nowMs: number): void {
    const packet = {
      bytes: 1200,
      isEliciting: true,
      isMarked: false,
      stream: -1,
      offset: 0,
      length: 0,
      isLast: false,
    };
    this.#recovery.onSent(this.#space, { ...packet, items: null }, nowMs);
  }

  /** Packets that have others between them, the newest first. */
  acknowledge(numbers: readonly [number, ...number[]], nowMs: number): void {
    const out = new WireWriter(new Uint8Array(64));
    for (const value of [numbers[0], 0, numbers.length - 1, 0]) out.varint(value);
    for (const [at, number] of numbers.slice(1).entries()) {
      out.varint((numbers[at] ?? 0) - number - 2);
      out.varint(0);
    }
    this.#recovery.onAck(this.#space, new WireReader().reset(out.bytes.slice(0, out.at)), nowMs);
  }

  probe(nowMs: number): void {
    this.#recovery.onTimeout([this.#space], false, nowMs);
  }
}

test("packets that are lost over three probe timeouts are persistent congestion, also behind probes", () => {
  const path = new Path();
  path.send(0);
  path.acknowledge([0], 50); // a probe timeout is 50 + 4 × 25 ms, and 25 ms of the peer's delay
  path.send(60);
  for (const nowMs of [240, 600]) {
    path.probe(nowMs);
    path.send(nowMs);
  }
  path.send(700);
  path.acknowledge([4], 750);
  assert.deepEqual(path.told, [true]);
});

test("losses with an acknowledged packet between them, within a shorter time, or before the first round trip are not", () => {
  const broken = new Path();
  broken.send(0);
  broken.acknowledge([0], 50);
  for (const nowMs of [60, 400, 700, 710, 710, 710]) broken.send(nowMs);
  broken.acknowledge([6, 2], 760); // those of 60 and 700 are lost, and the one of 400 is not
  assert.deepEqual(broken.told, [false]);

  const short = new Path();
  short.send(0);
  short.acknowledge([0], 50);
  for (const nowMs of [60, 300, 310]) short.send(nowMs);
  short.acknowledge([3], 400);
  assert.deepEqual(short.told, [false]);

  const first = new Path();
  for (const nowMs of [0, 5_000, 5_010]) first.send(nowMs);
  first.acknowledge([2], 5_060);
  assert.deepEqual(first.told, [false]);
});
