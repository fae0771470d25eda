import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Slices } from "#core/slices.ts";
import { skipLarge } from "../../test/support/runs.ts";
import { turnsDuring } from "../../test/support/turns.ts";
import { jsonChunks, LongList, LongMap } from "./long-json.ts";

async function written(value: unknown): Promise<string> {
  const chunks = await Array.fromAsync(jsonChunks(value, new Slices()));
  return Buffer.concat(chunks).toString();
}

test("what is written is what JSON.stringify would say", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.jsonValue()),
      fc.dictionary(fc.string(), fc.jsonValue()),
      async (items, members) => {
        const plain = { before: 1, left: undefined, items, nested: { members }, after: "ü" };
        const long = () => ({
          ...plain,
          items: new LongList(items.values()),
          nested: { members: new LongMap(Object.entries(members)) },
        });
        assert.equal(await written(long()), JSON.stringify(plain));
        assert.equal(await written(new LongList([long()])), JSON.stringify([plain]));
      },
    ),
    { numRuns: 50 },
  );
});

test("nothing inside is an empty list or object, an item that is none is null", async () => {
  assert.equal(await written({ a: new LongList([]), b: new LongMap([]) }), '{"a":[],"b":{}}');
  assert.equal(await written(new LongList([undefined, 1])), "[null,1]");
  assert.equal(
    await written(
      new LongMap([
        ["a", undefined],
        ["b", 1],
      ]),
    ),
    '{"b":1}',
  );
});

test(
  "the event loop turns while a long list is written, and no chunk is much longer than its bound",
  { skip: skipLarge },
  async () => {
    const items = Array.from({ length: 200_000 }, (_, at) => ({
      index: at,
      payload: `host${at}.example.com`,
    }));
    const chunks = jsonChunks({ items: new LongList(items.values()) }, new Slices());
    const [made, turns] = await turnsDuring(() => Array.fromAsync(chunks));
    assert.ok(turns > 5, `${turns} turns`);
    assert.ok(Math.max(...made.map(({ length }) => length)) < 70_000);
    assert.equal(Buffer.concat(made).toString(), JSON.stringify({ items }));
  },
);
