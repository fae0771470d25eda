import assert from "node:assert/strict";
import { test } from "node:test";
import { Plain } from "#core/fields.ts";
import { Slices } from "#core/slices.ts";
import { pack, unpack } from "./packed.ts";

const bare = (entries: object): object => Object.assign(Object.create(null) as object, entries);
const LONG = "long ".repeat(40);

test("a value comes back with its types, prototypes, order and sharing", async () => {
  const shared = { list: [1, "two", null, undefined, true, 4n, -0.5] };
  const value = {
    empty: [{}, [], new Map(), ""],
    shared,
    again: [shared, shared.list],
    bytes: Uint8Array.from([1, 2, 255]),
    map: new Map<string, unknown>([
      ["b", bare({ text: new Plain("0123"), nested: bare({}) })],
      ["a", new Plain(LONG)],
    ]),
    quoted: "0123",
    texts: [LONG, LONG, `${LONG}ü€😀`],
    [LONG]: LONG,
    ["__proto__"]: "a key like any other",
  };
  Object.defineProperty(value, "__proto__", { value: "a key like any other", enumerable: true });
  const back = (await unpack(pack(value), new Slices())) as typeof value;
  assert.deepStrictEqual(back, value);
  assert.deepEqual(Object.keys(back), Object.keys(value));
  assert.equal(back.again[0], back.shared);
  assert.equal(back.again[1], back.shared.list);
  assert.ok(Object.isFrozen(back) && Object.isFrozen(back.shared.list));
});

test("what two threads share is sent by its name; other instances are refused", async () => {
  const protocol = { open() {} };
  const references = {
    nameOf: (value: object) => (value === protocol ? "it" : null),
    named: (name: string) => (name === "it" ? protocol : undefined),
  };
  const back = await unpack(pack([{ protocol }, protocol], references), new Slices(), references);
  assert.deepEqual(back, [{ protocol }, protocol]);
  assert.throws(() => pack({ at: new Date() }), /an instance of Date cannot be sent/);
});

test("one long text in thousands of places is sent once", () => {
  const text = "x".repeat(1_000_000);
  const list = [new Plain(text), text];
  const packed = pack(Array.from({ length: 20_000 }, () => list));
  assert.ok(packed.reduce((sum, { length }) => sum + length, 0) < 2_000_000);
});
