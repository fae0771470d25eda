import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import * as z from "zod";
import { groupFields } from "./group-fields.ts";
import { listenerFields } from "./listener-fields.ts";
import { proxyFields } from "./proxy-fields.ts";
import { TOP_LEVEL } from "./sections/index.ts";

const manual = readFileSync(new URL("../../docs/configuration.md", import.meta.url), "utf8");
const named = new Set([...manual.matchAll(/`([a-z][a-z0-9-]*)`/g)].map(([, key]) => key));
const titles = new Set(
  [...manual.matchAll(/^## (.*)$/gm)].flatMap(([, title]) => (title as string).split(", ")),
);

/** Every key of every map in a JSON Schema. */
function keysOf(schema: unknown, found = new Set<string>()): ReadonlySet<string> {
  if (typeof schema !== "object" || schema === null) return found;
  for (const [key, value] of Object.entries(schema)) {
    if (key === "properties") for (const name of Object.keys(value as object)) found.add(name);
    keysOf(value, found);
  }
  return found;
}

test("the manual names every key of the file, and no top-level key that is not there", () => {
  const fixed = [z.object(TOP_LEVEL), proxyFields, groupFields, listenerFields];
  const legacy = new Set(
    keysOf(
      z.toJSONSchema(
        z.object({ a: TOP_LEVEL["tuic-server"], b: TOP_LEVEL.iptables, c: TOP_LEVEL["clash-for-android"] }),
        { io: "input", unrepresentable: "any" },
      ),
    ),
  );
  const keys = fixed.flatMap((schema) => [
    ...keysOf(z.toJSONSchema(schema, { io: "input", unrepresentable: "any" })),
  ]);
  const absent = [...new Set(keys)].filter((key) => !named.has(key) && !titles.has(key) && !legacy.has(key));
  assert.deepEqual(absent, []);
  for (const title of titles)
    if (/^[a-z]/.test(title)) assert.ok(title in TOP_LEVEL, `the manual has a section ${title}`);
});
