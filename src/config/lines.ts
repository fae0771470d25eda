import type { SourcePosition } from "./report.ts";
import { itemAt } from "#lib/at.ts";

/** Line and column of offsets in a text; the lines are counted on first use. */
export function lineIndex(text: string): { position(offset: number): SourcePosition } {
  let starts: number[] | null = null;
  return {
    position(offset) {
      starts ??= lineStarts(text);
      let low = 0;
      let high = starts.length - 1;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (itemAt(starts, middle) <= offset) low = middle;
        else high = middle - 1;
      }
      return { line: low + 1, column: offset - itemAt(starts, low) + 1 };
    },
  };
}

function lineStarts(text: string): number[] {
  const starts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return starts;
}
