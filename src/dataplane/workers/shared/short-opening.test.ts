import assert from "node:assert/strict";
import { test } from "node:test";
import type { Opening } from "#core/handover.ts";
import { newRelayMemory, RelayMemory } from "./relay-memory.ts";
import { readShortOpening, writeShortOpening } from "./short-opening.ts";
import { PLAIN, TLS, type WireSpec } from "./wire-spec.ts";

const INDEX = 5;

const openingOf = (ours: Uint8Array | null): Opening => ({
  kind: "opening",
  ours,
  isOwed: false,
  theirs: null,
});
const specOf = (layer: Opening): WireSpec => ({ kind: PLAIN, numbers: [], unread: null, layers: [layer] });

for (const bytes of [[], [0], [0, 0], [255, 0, 1], [255, 255, 255, 255, 255, 255]])
  test(`what goes out first is read as it was written: ${bytes.join(" ") || "nothing"}`, () => {
    const memory = newRelayMemory();
    const main = new RelayMemory(memory);
    main.wireNumbers.fill(7); // of a wire that was there before
    const opening = openingOf(Uint8Array.from(bytes));
    assert.equal(writeShortOpening(main, INDEX, specOf(opening)), true);
    const read = readShortOpening(new RelayMemory(memory), INDEX);
    assert.deepEqual(read, { unread: null, layers: [opening], details: {} });
  });

test("a wire of which more is to be said goes by message", () => {
  const memory = new RelayMemory(newRelayMemory());
  const opening = openingOf(Uint8Array.of(0, 0));
  const plain = specOf(opening);
  const others: readonly WireSpec[] = [
    specOf(openingOf(null)),
    specOf(openingOf(new Uint8Array(7))),
    specOf({ ...opening, isOwed: true }),
    specOf({ ...opening, afterMs: 0 }),
    specOf({ ...opening, theirs: { seenVersion: false, leftBytes: null } }),
    { ...plain, unread: new Uint8Array(0) },
    { ...plain, details: {} },
    { ...plain, layers: [] },
    { ...plain, layers: [opening, opening] },
    { ...plain, layers: [{ kind: "read-ahead", payload: Uint8Array.of(1) }] },
    { ...plain, numbers: [1, 2, 3, 4, 5, 6, 7] },
  ];
  for (const spec of others) assert.equal(writeShortOpening(memory, INDEX, spec), false);
  assert.equal(writeShortOpening(memory, INDEX, { ...plain, kind: TLS, numbers: [1] }), true);
});
