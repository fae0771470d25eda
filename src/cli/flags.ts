import { itemAt } from "#lib/at.ts";

/** Command line in the ecosystem's manner: one or two dashes, `-flag value` or `-flag=value`, parsing ends at the first other word. */

/** A flag that takes a value, with the environment variable that can replace it, or a switch. */
export interface FlagDefinition {
  readonly kind: "text" | "switch";
  readonly env?: string;
  /** Another name for it, which people try who know other programs. */
  readonly long?: string;
  /** How the value is called in the usage text. */
  readonly value?: string;
  readonly help: string;
}

export type FlagTable = Readonly<Record<string, FlagDefinition>>;

/** A value of a flag: given on the line, else in the environment. Empty text counts as not given. */
export interface ParsedFlags {
  text(flag: string): string | null;
  on(flag: string): boolean;
  /** The words behind the flags. */
  readonly rest: readonly string[];
}

/** The words of the command line are wrong; the message says which, and how they go. */
export class UsageError extends Error {
  override readonly name: string = "UsageError";
}

/** A usage error about a flag; the command adds its usage line. */
export class FlagError extends UsageError {
  override readonly name = "FlagError";
}

const TRUE_WORDS: readonly string[] = ["1", "t", "true"];
const FALSE_WORDS: readonly string[] = ["0", "f", "false"];

/** Throws `FlagError`. */
export function parseFlags(args: readonly string[], table: FlagTable, env: NodeJS.ProcessEnv): ParsedFlags {
  const given = new Map<string, string>();
  let at = 0;
  for (; at < args.length; at++) {
    const word = itemAt(args, at);
    if (word === "--") {
      at++;
      break;
    }
    if (!word.startsWith("-") || word === "-") break;
    const [asked, inline] = splitFlag(word);
    const [name, definition] = definitionOf(asked, table);
    if (definition.kind === "switch") given.set(name, switchValue(name, inline ?? "true"));
    else if (inline !== null) given.set(name, inline);
    else if (at + 1 < args.length) given.set(name, itemAt(args, ++at));
    else throw new FlagError(`flag needs an argument: -${name}`);
  }
  const text = (flag: string) => given.get(flag) || env[table[flag]?.env ?? ""] || null;
  return { text, on: (flag) => given.get(flag) === "true", rest: args.slice(at) };
}

function definitionOf(word: string, table: FlagTable): readonly [name: string, definition: FlagDefinition] {
  const found = Object.entries(table).find(([name, { long }]) => name === word || long === word);
  if (found === undefined) throw new FlagError(`flag provided but not defined: -${word}`);
  return found;
}

function splitFlag(word: string): readonly [name: string, value: string | null] {
  const body = word.replace(/^--?/, "");
  const equals = body.indexOf("=");
  return equals < 0 ? [body, null] : [body.slice(0, equals), body.slice(equals + 1)];
}

function switchValue(name: string, word: string): string {
  if (TRUE_WORDS.includes(word.toLowerCase())) return "true";
  if (FALSE_WORDS.includes(word.toLowerCase())) return "false";
  throw new FlagError(`invalid boolean value ${JSON.stringify(word)} for -${name}`);
}

export function usageText(head: string, table: FlagTable): string {
  const rows = Object.entries(table).map(([name, { long, value, help, env }]) => {
    const names = long === undefined ? `-${name}` : `-${name}, --${long}`;
    const left = value === undefined ? names : `${names} ${value}`;
    return `  ${left.padEnd(30)} ${help}${env === undefined ? "" : ` [${env}]`}`;
  });
  return `${head}\n${rows.join("\n")}\n`;
}
