/** What the command line understands, for completions, the manual page and the reference: all of it from the usage texts. */

export interface FlagOutline {
  /** With their dashes: `-v`, `--version`. */
  readonly names: readonly string[];
  /** How the value is called; null: a switch. */
  readonly value: string | null;
  readonly help: string;
}

export interface CommandOutline {
  readonly name: string;
  /** Behind the name: `HOST[:PORT]|URL`, "". */
  readonly words: string;
  readonly summary: string;
  /** Words that can stand behind the name: `create`, `list`. */
  readonly verbs: readonly string[];
  readonly flags: readonly FlagOutline[];
  /** The whole usage text, without a line end. */
  readonly help: string;
}

/** Width of the first column of the list of commands in the usage text. */
const USAGE_COLUMN = 24;
/** As `usageText` writes them. */
const FLAG = /^ {2}(-[\w-]+)(?:, (--[\w-]+))?(?: (\S+))? +(\S.*)$/gm;

/** `usage` is the command's line in the list, `help` its own text. */
export function commandOutline(usage: string, help: string): CommandOutline {
  const [name = "", ...words] = usage.slice(0, USAGE_COLUMN).trim().split(" ");
  return {
    name,
    words: words.join(" "),
    summary: usage.slice(USAGE_COLUMN).trim(),
    verbs: verbsOf(name, help),
    flags: flagsOf(help),
    help: help.trimEnd(),
  };
}

export function flagsOf(help: string): readonly FlagOutline[] {
  return [...help.matchAll(FLAG)].map(([, name = "", long, value = null, text = ""]) => ({
    names: long === undefined ? [name] : [name, long],
    value,
    help: text,
  }));
}

/** Of lines such as `weir token create -scopes LIST …` and `weir generate uuid | short-id`. */
function verbsOf(name: string, help: string): readonly string[] {
  const found = [...help.matchAll(new RegExp(`weir ${name} (\\S[^\\n]*)`, "g"))].flatMap(([, line = ""]) => {
    const alternatives = line.includes(" | ") ? line.split(" | ") : (line.split(" ", 1)[0] ?? "").split("|");
    return alternatives.map((text) => text.trim().split(" ", 1)[0] ?? "");
  });
  return [...new Set(found.filter((word) => /^[a-z0-9][a-z0-9-]*$/.test(word)))];
}
