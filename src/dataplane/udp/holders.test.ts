import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Holders } from "./holders.ts";

test("who holds most is known behind every change", () => {
  const change = fc.record({ holder: fc.constantFrom("a", "b", "c", "d"), isGone: fc.boolean() });
  fc.assert(
    fc.property(fc.array(change, { maxLength: 60 }), (changes) => {
      const holders = new Holders<{ readonly usedAtMs: number }>();
      const model = new Map<string, { readonly usedAtMs: number }[]>();
      for (const { holder, isGone } of changes) {
        const items = model.get(holder) ?? [];
        model.set(holder, items);
        if (isGone) holders.delete(holder, items.pop() ?? { usedAtMs: 0 });
        else {
          const item = { usedAtMs: items.length };
          items.push(item);
          holders.add(holder, item);
        }
        assert.equal(holders.of(holder).size, items.length);
        const most = Math.max(...Array.from(model.values(), ({ length }) => length));
        assert.equal(holders.largest?.size ?? 0, most);
      }
    }),
  );
});
