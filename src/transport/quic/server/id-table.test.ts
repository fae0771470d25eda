import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { IdTable } from "./id-table.ts";

test("it answers as a map by the bytes does, whatever comes and goes", () => {
  const id = fc.uint8Array({ minLength: 0, maxLength: 3 });
  const step = fc.record({ id, adds: fc.boolean(), owner: fc.integer({ min: 0, max: 2 }) });
  const owners = [{ name: "a" }, { name: "b" }, { name: "c" }];
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 60 }),
      fc.uint8Array({ minLength: 8, maxLength: 8 }),
      (steps, key) => {
        const table = new IdTable<object>(key);
        const known = new Map<string, object>();
        for (const { id: bytes, adds, owner } of steps) {
          const value = owners[owner];
          assert.ok(value !== undefined);
          const text = Buffer.from(bytes).toString("hex");
          if (adds) {
            table.add(bytes, value);
            if (!known.has(text)) known.set(text, value);
          } else {
            table.remove(bytes, value);
            if (known.get(text) === value) known.delete(text);
          }
          assert.equal(table.size, known.size);
          for (const other of steps)
            assert.equal(table.find(other.id), known.get(Buffer.from(other.id).toString("hex")) ?? null);
        }
      },
    ),
  );
});

test("an id is found where it lies in a datagram", () => {
  const table = new IdTable<object>(new Uint8Array(8));
  const value = {};
  table.add(Uint8Array.of(1, 2, 3), value);
  const datagram = Uint8Array.of(9, 9, 1, 2, 3, 9);
  assert.equal(table.find(datagram, 2, 3), value);
  assert.equal(table.find(datagram, 2, 4), null);
});
