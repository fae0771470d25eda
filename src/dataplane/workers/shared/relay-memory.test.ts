import assert from "node:assert/strict";
import { test } from "node:test";
import { newRelayMemory, RelayMemory } from "./relay-memory.ts";
import { ENDED, REQUESTED } from "./opcodes.ts";

/** Both sides' view of one memory. */
function openSides(): { readonly main: RelayMemory; readonly worker: RelayMemory } {
  const memory = newRelayMemory();
  return { main: new RelayMemory(memory), worker: new RelayMemory(memory) };
}

test("events that come faster than they are taken do not keep the main thread", () => {
  const { main, worker } = openSides();
  worker.report(0, REQUESTED);
  assert.equal(worker.mustSignal(), true);
  const seen: number[] = [];
  const on = (slot: number): void => {
    seen.push(slot);
    if (seen.length < 10_000) worker.report(seen.length, REQUESTED); // a flood: another one for each that is taken
  };
  assert.equal(main.takeEvents(on), true);
  assert.deepEqual(seen, [0], "only what stood there when it began");
  assert.equal(worker.mustSignal(), true, "of the rest its signal tells");
  main.takeEvents(on);
  assert.deepEqual(seen, [0, 1]);
});

test("a turn that is over leaves the rest, in order", () => {
  const { main, worker } = openSides();
  for (const slot of [3, 1, 2]) worker.report(slot, ENDED);
  const seen: number[] = [];
  const on = (slot: number): void => void seen.push(slot);
  assert.equal(
    main.takeEvents(on, () => false),
    false,
  );
  assert.deepEqual(seen, [3], "one at least");
  assert.equal(
    main.takeEvents(on, () => false),
    false,
  );
  assert.equal(
    main.takeEvents(on, () => false),
    true,
    "the last one leaves nothing",
  );
  assert.deepEqual(seen, [3, 1, 2]);
  assert.equal(main.takeEvents(on), true);
  assert.equal(seen.length, 3);
});

test("events are taken once, where taking one takes the others", () => {
  const { main, worker } = openSides();
  for (const slot of [0, 1, 2]) worker.report(slot, ENDED);
  const seen: number[] = [];
  main.takeEvents((slot) => {
    seen.push(slot);
    main.takeEvents((inner) => void seen.push(inner));
  });
  assert.deepEqual(seen, [0, 1, 2]);
});
