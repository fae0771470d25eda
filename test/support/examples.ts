/** Files of `examples/`, as tests start them. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

/** Without folder and ending. */
export function example(name: string): string {
  return readFileSync(new URL(`../../examples/${name}.yaml`, import.meta.url), "utf8");
}

/** Each text must stand in the example; only places of this machine are put in. */
export function withPlaces(text: string, places: Readonly<Record<string, string>>): string {
  for (const [from, to] of Object.entries(places)) {
    assert.ok(text.includes(from), from);
    text = text.replaceAll(from, to);
  }
  return text;
}
