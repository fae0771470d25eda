import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { SilenceLine } from "./silence-line.ts";

test("whatever is used, comes and goes: an item that is named has been silent for as long as any other", () => {
  const step = fc.tuple(fc.constantFrom("add", "use", "use", "delete", "find"), fc.nat(40));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const line = new SilenceLine<{ usedAtMs: number }>();
      const items: { usedAtMs: number }[] = [];
      for (const [nowMs, [what, number]] of steps.entries()) {
        const item = items[number % (items.length || 1)];
        if (what === "add") line.add(items[items.push({ usedAtMs: nowMs }) - 1]!);
        else if (item === undefined) assert.equal(line.longestSilent(), null);
        else if (what === "use") item.usedAtMs = nowMs;
        else if (what === "delete") assert.ok(line.delete(items.splice(items.indexOf(item), 1)[0]!));
        else {
          const found = line.longestSilent();
          assert.ok(found !== null && items.includes(found));
          assert.ok(items.every(({ usedAtMs }) => usedAtMs >= found.usedAtMs));
        }
        assert.equal(line.size, items.length);
      }
    }),
  );
});
