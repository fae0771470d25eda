/** Of text: from `start` to `end`, `text` instead. */
export interface Splice {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** In any order; they do not overlap. */
export function spliced(text: string, splices: readonly Splice[]): string {
  let made = "";
  let at = 0;
  for (const splice of splices.toSorted((left, right) => left.start - right.start)) {
    made += text.slice(at, Math.max(at, splice.start)) + splice.text;
    at = Math.max(at, splice.end);
  }
  return made + text.slice(at);
}
