import assert from "node:assert/strict";
import { test } from "node:test";
import { LogHub, formatLine } from "./log.ts";

function memoryHub(level: "info" | "warning") {
  const lines: string[] = [];
  return { lines, hub: new LogHub(level, { write: (line) => lines.push(line), flush() {} }) };
}

test("nothing is formatted when its level is off and there is no subscriber", () => {
  const { lines, hub } = memoryHub("warning");
  let made = 0;
  hub.debug(() => `costly ${++made}`);
  hub.info(() => `costly ${++made}`);
  assert.equal(made, 0);
  hub.error(() => `costly ${++made}`);
  assert.equal(made, 1);
  assert.match(lines.join(""), /^time="[^"]+" level=error msg="costly 1"\n$/);
});

test("a subscriber gets its own level, whatever is printed", () => {
  const { lines, hub } = memoryHub("warning");
  const seen: string[] = [];
  const subscription = hub.subscribe("info", ({ level, text }) => seen.push(`${level}:${text}`));
  hub.debug("a");
  hub.info("b");
  subscription[Symbol.dispose]();
  hub.info("c");
  assert.deepEqual(seen, ["info:b"]);
  assert.deepEqual(lines, []);
});

test("a line stays one line", () => {
  const line = formatLine({ level: "info", text: 'a "quoted"\nname', atMs: 0 });
  assert.equal(line, 'time="1970-01-01T00:00:00.000Z" level=info msg="a \\"quoted\\"\\nname"\n');
});

test("the last lines that were printed are kept, by level and within bounds", () => {
  const { hub } = memoryHub("info");
  hub.debug("not printed, not kept");
  for (let at = 0; at < 1_500; at++) hub.info(`line ${at}`);
  hub.error("trouble");
  const texts = (level: "debug" | "error", count: number) => hub.recent(level, count).map(({ text }) => text);
  assert.deepEqual(texts("debug", 3), ["line 1498", "line 1499", "trouble"]);
  assert.deepEqual(texts("error", 3), ["trouble"]);
  assert.equal(texts("debug", 5_000).length, 1_000);
  assert.deepEqual(hub.recent("silent", 5), []);
  assert.deepEqual(texts("debug", 0), []);
  for (let at = 0; at < 100; at++) hub.info("x".repeat(20_000));
  const kept = texts("debug", 5_000).join("").length;
  assert.ok(kept <= 1024 * 1024 && kept > 900_000, `${kept} characters`);
});
