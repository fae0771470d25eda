/** How much room text takes on a terminal. Names come from clients: control characters never reach it. */

const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;
const MARK = /\p{M}/u;
/** The blocks of East Asian wide characters (UAX #11) and of emoji. */
const WIDE =
  /[\u{1100}-\u{115f}\u{2e80}-\u{303e}\u{3041}-\u{a4cf}\u{ac00}-\u{d7a3}\u{f900}-\u{faff}\u{fe30}-\u{fe6f}\u{ff00}-\u{ff60}\u{ffe0}-\u{ffe6}\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;

function widthOf(character: string): number {
  if (MARK.test(character)) return 0;
  return WIDE.test(character) ? 2 : 1;
}

/** Of text without control characters. */
export function cells(text: string): number {
  let width = 0;
  for (const character of text) width += widthOf(character);
  return width;
}

/** Printable, and no wider than that; what was longer ends with an ellipsis. */
export function fitted(text: string, columns: number): string {
  const plain = text.replaceAll(HIDDEN, "?");
  if (cells(plain) <= columns) return plain;
  let kept = "";
  let width = 0;
  for (const character of plain) {
    width += widthOf(character);
    if (width > columns - 1) break;
    kept += character;
  }
  return columns > 0 ? `${kept}…` : "";
}
