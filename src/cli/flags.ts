/** Command line in the ecosystem's manner: one or two dashes, `-flag value` or `-flag=value`, parsing ends at the first other word. */

/** A flag that takes a value, with the environment variable that stands in for it, or a switch. */
export interface FlagDefinition {
  readonly kind: "text" | "switch";
  readonly env?: string;
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

export class UsageError extends Error {
  override readonly name = "UsageError";
}

const TRUE_WORDS: readonly string[] = ["1", "t", "true"];
const FALSE_WORDS: readonly string[] = ["0", "f", "false"];

export function parseFlags(args: readonly string[], table: FlagTable, env: NodeJS.ProcessEnv): ParsedFlags {
  const given = new Map<string, string>();
  let at = 0;
  for (; at < args.length; at++) {
    const word = args[at] as string;
    if (word === "--") {
      at++;
      break;
    }
    if (!word.startsWith("-") || word === "-") break;
    const [name, inline] = splitFlag(word);
    const definition = table[name];
    if (definition === undefined) throw new UsageError(`flag provided but not defined: -${name}`);
    if (definition.kind === "switch") given.set(name, switchValue(name, inline ?? "true"));
    else if (inline !== null) given.set(name, inline);
    else if (at + 1 < args.length) given.set(name, args[++at] as string);
    else throw new UsageError(`flag needs an argument: -${name}`);
  }
  const text = (flag: string) => given.get(flag) || env[table[flag]?.env ?? ""] || null;
  return { text, on: (flag) => given.get(flag) === "true", rest: args.slice(at) };
}

function splitFlag(word: string): readonly [name: string, value: string | null] {
  const body = word.replace(/^--?/, "");
  const equals = body.indexOf("=");
  return equals < 0 ? [body, null] : [body.slice(0, equals), body.slice(equals + 1)];
}

function switchValue(name: string, word: string): string {
  if (TRUE_WORDS.includes(word.toLowerCase())) return "true";
  if (FALSE_WORDS.includes(word.toLowerCase())) return "false";
  throw new UsageError(`invalid boolean value ${JSON.stringify(word)} for -${name}`);
}

export function usageText(head: string, table: FlagTable): string {
  const rows = Object.entries(table).map(([name, { value, help, env }]) => {
    const left = value === undefined ? `-${name}` : `-${name} ${value}`;
    return `  ${left.padEnd(30)} ${help}${env === undefined ? "" : ` [${env}]`}`;
  });
  return `${head}\n${rows.join("\n")}\n`;
}
