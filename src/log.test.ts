import assert from "node:assert/strict";
import { test } from "node:test";
import { LogHub, formatLine } from "./log.ts";

function memoryHub(level: "info" | "warning") {
  const lines: string[] = [];
  return { lines, hub: new LogHub(level, { write: (line) => lines.push(line), flush() {} }) };
}

test("nothing is formatted when its level is off and nobody subscribes", () => {
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
