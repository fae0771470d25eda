import assert from "node:assert/strict";
import { test } from "node:test";
import { EAGAIN, HEADROOM_BYTES } from "#platform/linux/relay-calls.ts";
import { FULL, type Ssl } from "#platform/linux/ssl.ts";
import { FramedWire } from "./framed.ts";
import type { WireIo } from "./wire.ts";

/** A library that gives so many bytes at each read, and why no more. */
function libraryThatGives(...reads: readonly { readonly bytes: number; readonly outcome: number }[]): Ssl {
  const left = [...reads];
  const library = {
    outcome: FULL,
    readAhead() {},
    outgoing: { send: () => null },
    read(_: bigint, size: number): number {
      const { bytes, outcome } = left.shift() ?? { bytes: 0, outcome: EAGAIN };
      library.outcome = outcome;
      return Math.min(bytes, size);
    },
  };
  return library as unknown as Ssl;
}

const calls = { roomy: new Uint8Array(HEADROOM_BYTES + 65_536) };
const io = { calls, bufferedBytes: 0 } as unknown as WireIo;
const DATA_LEFT = 60_000;
const start = {
  word: (at: number) => [1, 1, DATA_LEFT][at] ?? 0,
  unread: null,
  padding: undefined,
  spare() {},
};

test("what comes between two looks of one read, and is read ahead, needs no event to be read", () => {
  const ssl = libraryThatGives({ bytes: 1_000, outcome: EAGAIN }, { bytes: 4_000, outcome: FULL });
  const wire = new FramedWire(ssl, 5, start);
  assert.equal(wire.read(io, 5_000), 5_000);
  assert.equal(wire.readable, true, "the library may hold more, and the socket is empty");
});

test("it waits for an event where the last look found nothing", () => {
  const wire = new FramedWire(libraryThatGives({ bytes: 1_000, outcome: EAGAIN }), 5, start);
  assert.equal(wire.read(io, 5_000), 1_000);
  assert.equal(wire.readable, false);
});
