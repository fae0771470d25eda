/** What an edit of a text has to have done, by other means than the editor's own. */
import assert from "node:assert/strict";
import { parse } from "yaml";
import { withEdits } from "#config/edit/index.ts";
import type { Edit } from "#core/config-edit.ts";
import type { JsonValue } from "#core/control.ts";
import { ConfigError } from "#core/errors.ts";

export type Members = Record<string, JsonValue>;

/** Values as the library reads them. */
export const readPlain = (text: string): Members =>
  (parse(text, { merge: true, logLevel: "error" }) ?? {}) as Members;

/** What the edit says, by other means than ours: on the values that the library reads. */
function done(file: Members, edit: Edit): Members {
  const copy = structuredClone(file);
  const keys = edit.path.slice(0, edit.op === "add" ? undefined : -1);
  let at: unknown = copy;
  let hold: [Record<string | number, unknown>, string | number] | null = null;
  for (const key of keys) {
    const here = at as Record<string | number, unknown>;
    const step =
      Array.isArray(here) && typeof key === "string" ? here.findIndex((item) => item?.name === key) : key;
    hold = [here, step];
    here[step] ??= edit.op === "add" && key === keys.at(-1) ? [] : {};
    at = here[step];
  }
  assert.ok(at !== undefined && (hold !== null || keys.length === 0));
  if (edit.op === "add") {
    const list = at as JsonValue[];
    const place = (edit.before ??
      (edit.after === undefined ? list.length : Number(edit.after) + 1)) as number;
    list.splice(place, 0, edit.value);
  } else if (edit.op === "set") (at as Members)[edit.path.at(-1) as string] = edit.value;
  else if (Array.isArray(at)) at.splice(edit.path.at(-1) as number, 1);
  else delete (at as Members)[edit.path.at(-1) as string];
  return copy;
}

/** Lines that went and came, all others being the same in the same order (longest common subsequence). */
function changedLines(
  before: string,
  after: string,
): readonly [gone: readonly string[], come: readonly string[]] {
  const old = before.split(/(?<=\n)/);
  const next = after.split(/(?<=\n)/);
  const width = next.length + 1;
  const length = new Uint32Array((old.length + 1) * width);
  for (let left = old.length - 1; left >= 0; left--)
    for (let right = next.length - 1; right >= 0; right--) {
      const down = length[(left + 1) * width + right] ?? 0;
      const across = length[left * width + right + 1] ?? 0;
      const both = (length[(left + 1) * width + right + 1] ?? 0) + 1;
      length[left * width + right] = old[left] === next[right] ? both : Math.max(down, across);
    }
  const [gone, come]: [string[], string[]] = [[], []];
  let [left, right] = [0, 0];
  while (left < old.length || right < next.length) {
    const down = length[(left + 1) * width + right] ?? 0;
    const across = length[left * width + right + 1] ?? 0;
    if (left < old.length && right < next.length && old[left] === next[right])
      [left, right] = [left + 1, right + 1];
    else if (right >= next.length || (left < old.length && down >= across)) gone.push(old[left++] ?? "");
    else come.push(next[right++] ?? "");
  }
  return [gone, come];
}

/** An edit may touch the line that it names, and those of a collection between brackets. */
function assertFewLines(before: string, after: string, edit: Edit): void {
  const [gone, come] = changedLines(before, after);
  const isOpenEnd = !before.endsWith("\n");
  const isFlow = gone.some((line) => /[[\]{},]/.test(line)) || gone.length === 1;
  const what = `${JSON.stringify(edit)}\n${before}\n--- became\n${after}`;
  if (edit.op === "add" && !isFlow && !isOpenEnd) assert.equal(gone.length, 0, what);
  if (edit.op === "add") assert.ok(gone.length <= 2, what);
  if (edit.op === "remove" && !isFlow) assert.ok(come.length <= 1, what);
  if (edit.op === "set" && typeof edit.value !== "object" && !isFlow) {
    const wasBlock = /^ *(?:deep|notes|note|udp|中文 key):/m.test(gone.join("")); // one that had lines of its own
    assert.ok(gone.length <= 1 || wasBlock, what);
  }
}

/** The text with the edit; null: it was refused. Throws where more or less changed than it says. */
export function checkedEdit(text: string, edit: Edit): string | null {
  let after: string;
  try {
    after = withEdits(text, [edit]);
  } catch (error) {
    if (error instanceof ConfigError) return null;
    throw error;
  }
  const what = `${JSON.stringify(edit)}\n${text}\n--- became\n${after}`;
  assert.deepEqual(readPlain(after), done(readPlain(text), edit), what);
  assertFewLines(text, after, edit);
  return after;
}
