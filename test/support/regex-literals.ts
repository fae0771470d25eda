/** Finds the regular expressions written into TypeScript, and strings that would make a slow one slow. */

export interface RegexLiteral {
  readonly line: number;
  readonly source: string;
  readonly flags: string;
}

/** Behind these a slash begins an expression; behind a value it divides. */
const BEFORE_VALUE = "(,=:[!&|?{};+-*%<>~^";
const WORDS_BEFORE_VALUE = new Set([
  "return",
  "typeof",
  "case",
  "in",
  "of",
  "else",
  "void",
  "yield",
  "await",
]);

/** Every literal of a file, in order. Comments, strings and the text of templates are passed over. */
export function regexLiterals(text: string): readonly RegexLiteral[] {
  const found: RegexLiteral[] = [];
  const templates: number[] = []; // open braces inside each `${…}`, innermost last
  let before = ";";
  let line = 1;
  for (let at = 0; at < text.length; at++) {
    const char = text[at] as string;
    const two = text.slice(at, at + 2);
    let end = at;
    if (char === "\n") line++;
    else if (two === "//") end = ((text.indexOf("\n", at) + text.length) % text.length) - 1;
    else if (two === "/*") end = text.indexOf("*/", at) + 1;
    else if (char === '"' || char === "'") end = endOf(text, at, char);
    else if (char === "`" || (char === "}" && templates.at(-1) === 0)) {
      if (char === "}") templates.pop();
      end = endOfTemplate(text, at);
      if (text[end] === "{") templates.push(0);
    } else if (char === "/" && beginsValue(before)) {
      end = endOfRegex(text, at);
      const flags = /^[a-z]*/.exec(text.slice(end + 1, end + 12))?.[0] ?? "";
      found.push({ line, source: text.slice(at + 1, end), flags });
      end += flags.length;
    } else if (/[\w$]/.test(char)) end = at + (/^[\w$]+/.exec(text.slice(at, at + 80))?.[0].length ?? 1) - 1;
    else if (templates.length > 0 && (char === "{" || char === "}"))
      templates.push((templates.pop() as number) + (char === "{" ? 1 : -1));
    for (let pass = at + 1; pass <= end; pass++) if (text[pass] === "\n") line++;
    const isComment = two === "//" || two === "/*";
    if (!isComment && /\S/.test(char))
      before = text[end] === "{" && char !== "{" ? "{" : /[\w$]/.test(char) ? text.slice(at, end + 1) : char;
    at = end;
  }
  return found;
}

function beginsValue(before: string): boolean {
  return WORDS_BEFORE_VALUE.has(before) || (before.length === 1 && BEFORE_VALUE.includes(before));
}

function endOf(text: string, from: number, quote: string): number {
  let at = from + 1;
  while (at < text.length && text[at] !== quote) at += text[at] === "\\" ? 2 : 1;
  return at;
}

/** At the closing backtick, or at the brace of `${`. */
function endOfTemplate(text: string, from: number): number {
  let at = from + 1;
  for (; at < text.length && text[at] !== "`"; at += text[at] === "\\" ? 2 : 1)
    if (text.startsWith("${", at)) return at + 1;
  return at;
}

function endOfRegex(text: string, from: number): number {
  let inClass = false;
  let at = from + 1;
  for (; at < text.length && (inClass || text[at] !== "/"); at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === "[") inClass = true;
    else if (text[at] === "]") inClass = false;
  }
  return at;
}

/** One character for every class that expressions use, beside those that an expression names itself. */
const CLASSES: Readonly<Record<string, string>> = {
  d: "0",
  D: "x",
  w: "a",
  W: "-",
  s: " ",
  S: "x",
  n: "\n",
  t: "\t",
  r: "\r",
};
const COMMON = ["a", "0", " ", "\n", ".", "x"];
const MOST_CHARACTERS = 14;

/** What an expression may loop over: single characters and pairs of those that it speaks of. */
export function pumpsFor(source: string): readonly string[] {
  const characters = new Set<string>();
  for (let at = 0; at < source.length; at++) {
    const char = source[at] as string;
    if (char === "\\") {
      const next = source[++at] ?? "";
      characters.add(CLASSES[next] ?? next);
    } else if (!"()[]{}^$*+?|".includes(char)) characters.add(char);
  }
  const alphabet = [...new Set([...COMMON, ...characters])].slice(0, MOST_CHARACTERS);
  return [...alphabet, ...alphabet.flatMap((left) => alphabet.map((right) => left + right))];
}
