import fc from "fast-check";

const FIRST_SURROGATE = 0xd800;
const SURROGATES = 0x800;
const CODE_POINTS = 0x11_0000 - SURROGATES;

/**
 * Any code point but surrogates, a unit for `fc.string`. As the library's own unit `binary`, which first makes a table of
 * all of them: that takes seconds and 300 MiB.
 */
export const codePoint: fc.Arbitrary<string> = fc
  .integer({ min: 0, max: CODE_POINTS - 1 })
  .map((index) => String.fromCodePoint(index < FIRST_SURROGATE ? index : index + SURROGATES), indexOf);

/** Throws for what `codePoint` does not make. */
function indexOf(text: unknown): number {
  const point = typeof text === "string" ? text.codePointAt(0) : undefined;
  if (point === undefined || String.fromCodePoint(point) !== text) throw new Error("no single code point");
  if (point < FIRST_SURROGATE) return point;
  if (point < FIRST_SURROGATE + SURROGATES) throw new Error("a surrogate");
  return point - SURROGATES;
}
