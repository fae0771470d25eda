import { lastOf } from "./at.ts";
import { itemAt } from "./at.ts";

/**
 * A regular expression as the ecosystem writes it (.NET-like): `(?i)`, `(?s)`, `(?m)` may occur anywhere and apply from
 * there to the end of their group; `(?u)` is the mode of all of them. Look-around works. Throws `SyntaxError`.
 */
export function compilePattern(source: string, flags = ""): RegExp {
  const body = scopeInlineFlags(source);
  try {
    return new RegExp(body, `u${flags}`);
  } catch {
    // Escapes such as \- are only allowed outside Unicode mode; the second error is the one to show.
    return new RegExp(body, flags);
  }
}

/** `a(?i)b` → `a(?i:b)`: JavaScript knows flags only for a group. */
function scopeInlineFlags(source: string): string {
  if (!source.includes("(?")) return source;
  let out = "";
  let inClass = false;
  const opened: string[][] = [[]]; // flags opened inside each group, innermost group last
  const flagsHere = () => lastOf(opened);
  const close = () => ")".repeat(flagsHere().length);
  for (let at = 0; at < source.length; at++) {
    const char = source.charAt(at);
    if (char === "\\") {
      out += char + (source[++at] ?? "");
      continue;
    }
    const inline = !inClass && char === "(" ? /^\(\?([imsu]+)\)/.exec(source.slice(at, at + 8)) : null;
    if (inline !== null) {
      at += inline[0].length - 1;
      const letters = itemAt(inline, 1).replaceAll("u", "");
      if (letters === "") continue;
      flagsHere().push(`(?${letters}:`);
      out += lastOf(flagsHere());
      continue;
    }
    if (inClass) inClass = char !== "]";
    else if (char === "[") inClass = true;
    else if (char === "(") opened.push([]);
    else if (char === ")" && opened.length > 1) {
      out += close();
      opened.pop();
    } else if (char === "|") {
      out += `${close()}|${flagsHere().join("")}`; // the flags also apply behind the bar
      continue;
    }
    out += char;
  }
  return out + close();
}
