import assert from "node:assert/strict";
import { test } from "node:test";
import { FIRST_BLOCK, type Layer, type Opening, type VisionLayer } from "#core/wire-state.ts";
import { newRelayMemory, RelayMemory } from "./relay-memory.ts";
import { readShortLayer, writeShortLayer } from "./short-layer.ts";
import { PLAIN, TLS, type WireSpec } from "./wire-spec.ts";

const INDEX = 5;

const openingOf = (ours: Uint8Array | null): Opening => ({
  kind: "opening",
  ours,
  isOwed: false,
  theirs: null,
});
const blocksOf = (opening: Uint8Array): VisionLayer => ({
  kind: "vision",
  role: "server",
  id: Uint8Array.from({ length: 16 }, (_, at) => 255 - at * 17),
  mayLeave: true,
  reading: FIRST_BLOCK,
  writing: { opening, isFirst: true },
});
const specOf = (layer: Layer): WireSpec => ({ kind: PLAIN, numbers: [], unread: null, layers: [layer] });

for (const bytes of [[], [0], [0, 0], [255, 0, 1], [255, 255, 255, 255, 255, 255]])
  for (const layer of [openingOf(Uint8Array.from(bytes)), blocksOf(Uint8Array.from(bytes))])
    test(`what goes out first is read as it was written: ${bytes.join(" ") || "nothing"}, ${layer.kind}`, () => {
      const memory = newRelayMemory();
      const main = new RelayMemory(memory);
      main.wireNumbers.fill(7); // of a wire that was there before
      assert.equal(writeShortLayer(main, INDEX, specOf(layer)), true);
      const read = readShortLayer(new RelayMemory(memory), INDEX);
      assert.deepEqual(read, { unread: null, layers: [layer], details: {} });
    });

test("a wire of which more is to be said goes by message", () => {
  const memory = new RelayMemory(newRelayMemory());
  const opening = openingOf(Uint8Array.of(0, 0));
  const blocks = blocksOf(Uint8Array.of(0, 0));
  const plain = specOf(opening);
  const others: readonly WireSpec[] = [
    specOf(openingOf(null)),
    specOf(openingOf(new Uint8Array(7))),
    specOf({ ...opening, isOwed: true }),
    specOf({ ...opening, afterMs: 0 }),
    specOf({ ...opening, theirs: { seenVersion: false, leftBytes: null } }),
    specOf(blocksOf(new Uint8Array(7))),
    specOf({ ...blocks, role: "client" }),
    specOf({ ...blocks, id: new Uint8Array(15) }),
    specOf({ ...blocks, mayLeave: false }),
    specOf({ ...blocks, reading: null }),
    specOf({ ...blocks, reading: { ...FIRST_BLOCK, contentBytes: 1 } }),
    specOf({ ...blocks, writing: null }),
    specOf({ ...blocks, writing: { opening: Uint8Array.of(0, 0), isFirst: false } }),
    specOf({ ...blocks, writing: { opening: Uint8Array.of(0, 0), isFirst: true, afterMs: 0 } }),
    { ...plain, unread: new Uint8Array(0) },
    { ...plain, details: {} },
    { ...plain, layers: [] },
    { ...plain, layers: [opening, opening] },
    { ...plain, layers: [opening, blocks] },
    { ...plain, layers: [{ kind: "read-ahead", payload: Uint8Array.of(1) }] },
    { ...plain, numbers: [1, 2, 3, 4] },
  ];
  for (const spec of others) assert.equal(writeShortLayer(memory, INDEX, spec), false);
  for (const layer of [opening, blocks])
    assert.equal(writeShortLayer(memory, INDEX, { ...specOf(layer), kind: TLS, numbers: [1] }), true);
});
