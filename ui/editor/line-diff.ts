/** What differs between two texts, by lines. */

export interface DiffLine {
  readonly kind: "same" | "removed" | "added";
  /** From 1; of the text that the line is in, of a line in both the new one. */
  readonly number: number;
  readonly text: string;
}

/** Beyond so many pairs of lines the middle is shown as replaced whole: the table would be too large. */
const MOST_CELLS = 4_000_000;

export function diffLines(before: string, after: string): readonly DiffLine[] {
  const [old, now] = [before.split("\n"), after.split("\n")];
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head++;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old.at(-1 - tail) === now.at(-1 - tail))
    tail++;
  const middle = between(old.slice(head, old.length - tail), now.slice(head, now.length - tail), head);
  const same = (from: number, to: number): readonly DiffLine[] =>
    now.slice(from, to).map((text, at) => ({ kind: "same", number: from + at + 1, text }));
  return [...same(0, head), ...middle, ...same(now.length - tail, now.length)];
}

/** By the longest common subsequence. `head`: lines in front of both. */
function between(old: readonly string[], now: readonly string[], head: number): readonly DiffLine[] {
  const removed = (at: number): DiffLine => ({ kind: "removed", number: head + at + 1, text: old[at] ?? "" });
  const added = (at: number): DiffLine => ({ kind: "added", number: head + at + 1, text: now[at] ?? "" });
  const width = now.length + 1;
  if ((old.length + 1) * width > MOST_CELLS)
    return [...old.map((_, at) => removed(at)), ...now.map((_, at) => added(at))];
  const longest = new Uint32Array((old.length + 1) * width);
  const at = (row: number, column: number): number => longest[row * width + column] ?? 0;
  for (let row = old.length - 1; row >= 0; row--)
    for (let column = now.length - 1; column >= 0; column--)
      longest[row * width + column] =
        old[row] === now[column]
          ? at(row + 1, column + 1) + 1
          : Math.max(at(row + 1, column), at(row, column + 1));
  const lines: DiffLine[] = [];
  let [row, column] = [0, 0];
  while (row < old.length || column < now.length) {
    if (row < old.length && column < now.length && old[row] === now[column]) {
      lines.push({ kind: "same", number: head + column + 1, text: now[column] ?? "" });
      row++;
      column++;
    } else if (column === now.length || (row < old.length && at(row + 1, column) >= at(row, column + 1)))
      lines.push(removed(row++));
    else lines.push(added(column++));
  }
  return lines;
}

/** With a few lines around each change; null: lines are left out here. */
export function nearChanges(lines: readonly DiffLine[], context = 3): readonly (DiffLine | null)[] {
  const isNear = (at: number): boolean =>
    lines.slice(Math.max(0, at - context), at + context + 1).some(({ kind }) => kind !== "same");
  const shown: (DiffLine | null)[] = [];
  for (const [at, line] of lines.entries())
    if (line.kind !== "same" || isNear(at)) shown.push(line);
    else if (shown.at(-1) !== null) shown.push(null);
  return shown;
}
