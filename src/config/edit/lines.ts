/** Places in a text, by its lines. */

/** Where the line of an offset begins. */
export function lineStart(text: string, offset: number): number {
  return offset === 0 ? 0 : text.lastIndexOf("\n", offset - 1) + 1;
}

/** Where the line behind that of an offset begins, or the end of the text. An offset at the beginning of a line is that line's. */
export function nextLine(text: string, offset: number): number {
  const end = text.indexOf("\n", offset);
  return end < 0 ? text.length : end + 1;
}

/** The first line that begins at or behind an offset where what stands before it has ended. */
export function lineBehind(text: string, offset: number): number {
  return offset > 0 && text[offset - 1] === "\n" ? offset : nextLine(text, offset);
}

/** The line end that the text has near an offset. */
export function eolNear(text: string, offset: number): string {
  const before = text.lastIndexOf("\n", Math.max(0, offset - 1));
  const end = before >= 0 ? before : text.indexOf("\n");
  return end > 0 && text[end - 1] === "\r" ? "\r\n" : "\n";
}

/** What stands before an offset in its line. */
export function before(text: string, offset: number): string {
  return text.slice(lineStart(text, offset), offset);
}

export function isBlank(text: string): boolean {
  return /^[ \t\r\n]*$/.test(text);
}

/** The line at `start` holds a comment and nothing else; its column, or -1. */
function commentColumn(text: string, start: number): number {
  let at = start;
  while (text[at] === " " || text[at] === "\t") at++;
  return text[at] === "#" ? at - start : -1;
}

/** Takes the comment lines directly above the line at `start` along, those in the same column and not before `least`. */
export function withCommentsAbove(text: string, start: number, column: number, least: number): number {
  let top = start;
  while (top > least) {
    const above = lineStart(text, top - 1);
    if (above < least || commentColumn(text, above) !== column) break;
    top = above;
  }
  return top;
}

/** Passes the comment lines from `start` on that are further right than a column. */
export function behindDeeperComments(text: string, start: number, column: number): number {
  let at = start;
  while (at < text.length && commentColumn(text, at) > column) at = nextLine(text, at);
  return at;
}
