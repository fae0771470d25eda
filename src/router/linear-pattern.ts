/**
 * Regular expressions from configuration files and remote lists, run so that none can hang: only what V8's linear-time
 * engine can run is accepted, and V8 falls back to that engine as soon as its usual one backtracks too much.
 */
import { setFlagsFromString } from "node:v8";
import { ConfigError, UnusableError, messageOf } from "#core/errors.ts";
import { compileBounded } from "./bounded-pattern.ts";

const LENGTH_LIMIT = 2000;
/** V8's linear engine refuses a repeat that multiplies out to more than this. */
const REPEAT_LIMIT = 16;
const REPEAT_TOTAL = 1024;
/** V8's own flag for "linear time or not at all". */
const LINEAR = "l";

const REPEAT = /^\{(\d+)(?:(,)(\d*))?\}(\??)/;

/**
 * A case-insensitive test. What it is given must be lower case, and so the linear engine, which cannot ignore case, does.
 * Look-around is admitted where it provably ends soon. Throws `ConfigError` where the pattern is no regular expression or
 * too long, `UnusableError` where it needs back-references or too large repeats.
 */
export function compileLinear(pattern: string): { test(text: string): boolean } {
  if (pattern === "") throw new ConfigError("the pattern is empty: write a regular expression");
  if (pattern.length > LENGTH_LIMIT)
    throw new ConfigError(`the pattern is ${pattern.length} characters long: at most ${LENGTH_LIMIT}`);
  const folded = fold(withoutFlags(pattern));
  // Process-wide switches of V8 that enable the `l` flag and the fall-back, and change nothing for other patterns. They
  // come first, and the group makes the source our own: a pattern that was compiled without them stays cached without.
  setFlagsFromString("--enable-experimental-regexp-engine");
  setFlagsFromString("--enable-experimental-regexp-engine-on-excessive-backtracks");
  const source = `(?:${folded})`;
  const compiled = compile(folded, source);
  try {
    new RegExp(source, LINEAR);
  } catch (error) {
    const bounded = compileBounded(source.slice("(?:".length, -1));
    if (bounded !== null) return bounded;
    throw new UnusableError(
      "this pattern cannot be run in linear time: write it without back-references (\\1), without repeats of a group " +
        `that multiply to more than ${REPEAT_LIMIT}, and with fewer repeats beside look-ahead (?=…) (?!…)`,
      { cause: error },
    );
  }
  return compiled;
}

/** Case never counts, and texts are Unicode: these flags say nothing new. */
function withoutFlags(pattern: string): string {
  return pattern.replace(/^(?:\(\?[iu]+\))+/, "").replaceAll("(?i:", "(?:");
}

function compile(folded: string, source: string): RegExp {
  try {
    new RegExp(folded, "s"); // on its own, for `a)(b` must not become right by the group
    return new RegExp(source);
  } catch (error) {
    throw new ConfigError(`no regular expression: ${messageOf(error)}`, { cause: error });
  }
}

/** Lower-cases literals and splits large repeats of single characters; escapes keep their meaning. */
function fold(pattern: string): string {
  let folded = "";
  for (let at = 0; at < pattern.length;) {
    const atom = atomAt(pattern, at);
    const repeat = REPEAT.exec(pattern.slice(at + atom.length));
    const lower = lowerAtom(atom);
    folded += repeat === null || atom === ")" ? lower : repeated(lower, repeat);
    at += atom.length + (repeat === null || atom === ")" ? 0 : repeat[0].length);
  }
  return folded;
}

const ESCAPE = /^\\(?:x[0-9a-f]{2}|u[0-9a-f]{4}|c[a-z]|k<[^>]*>|.)/is;
const CLASS = /^\[\^?(?:\\.|[^\]\\])*\]/s;

/** One escape, one class, or one character. */
function atomAt(pattern: string, at: number): string {
  const rest = pattern.slice(at, at + LENGTH_LIMIT);
  return (ESCAPE.exec(rest) ?? CLASS.exec(rest))?.[0] ?? pattern.charAt(at);
}

function lowerAtom(atom: string): string {
  if (atom.startsWith("\\")) {
    const code = /^\\[xu]([0-9a-f]+)$/i.exec(atom)?.[1];
    if (code === undefined) return atom;
    const letter = String.fromCharCode(Number.parseInt(code, 16));
    return /^[A-Z]$/.test(letter) ? letter.toLowerCase() : atom;
  }
  if (!atom.startsWith("[") || atom.length === 1) return atom.toLowerCase();
  return atom.replace(/\\.|[^\\]/gs, (part) => (part.startsWith("\\") ? part : part.toLowerCase()));
}

/** `x{1,40}` as `x{1,16}x{0,16}x{0,8}`: the same language in pieces that the linear engine takes. */
function repeated(atom: string, [text, low, comma, high, lazy]: RegExpExecArray): string {
  const least = Number(low);
  const most = comma === undefined ? least : high === "" ? Number.POSITIVE_INFINITY : Number(high);
  const bounded = most === Number.POSITIVE_INFINITY ? least : most;
  if (most < least || bounded <= REPEAT_LIMIT) return atom + text;
  if (bounded > REPEAT_TOTAL)
    throw new ConfigError(`the repeat ${text} is too large: at most ${REPEAT_TOTAL}`);
  let pieces = "";
  let needed = least;
  for (let left = bounded; left > 0; left -= REPEAT_LIMIT) {
    const upper = Math.min(REPEAT_LIMIT, left);
    const lower = Math.min(upper, needed);
    needed -= lower;
    pieces += `${atom}{${lower},${upper}}${lazy}`;
  }
  return most === Number.POSITIVE_INFINITY ? `${pieces}${atom}*${lazy}` : pieces;
}
