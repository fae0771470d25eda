/** `weir completion bash|zsh|fish`: a script that completes commands, their words and their flags. It never runs weir. */
import { UsageError } from "./flags.ts";
import type { CommandOutline, FlagOutline } from "./outline.ts";

export interface Outline {
  readonly commands: readonly CommandOutline[];
  /** Of weir without a command. */
  readonly flags: readonly FlagOutline[];
}

const SHELLS: Readonly<Record<string, (outline: Outline) => string>> = { bash, zsh, fish };

export const COMPLETION_USAGE = `usage: weir completion ${Object.keys(SHELLS).join("|")}   print a script for the shell

  bash   weir completion bash > /etc/bash_completion.d/weir
  zsh    weir completion zsh > "\${fpath[1]}/_weir"
  fish   weir completion fish > ~/.config/fish/completions/weir.fish
`;

export function completion(args: readonly string[], outline: Outline): number {
  process.stdout.write(completionScript(args, outline));
  return 0;
}

/** `args`: the shell alone. Throws `UsageError`. */
export function completionScript(args: readonly string[], outline: Outline): string {
  const [shell = "", ...more] = args;
  const script = Object.hasOwn(SHELLS, shell) ? SHELLS[shell] : undefined;
  if (script === undefined || more.length > 0) throw new UsageError(COMPLETION_USAGE);
  return script(outline);
}

const namesOf = (flags: readonly FlagOutline[]): readonly string[] => flags.flatMap(({ names }) => names);
const wordsOf = ({ verbs, flags }: CommandOutline): string => [...verbs, ...namesOf(flags)].join(" ");

/** What takes a value is followed by a file name, as is whatever the script does not know. */
function bash({ commands, flags }: Outline): string {
  const takers = new Set(
    [flags, ...commands.map((one) => one.flags)]
      .flat()
      .filter(({ value }) => value !== null)
      .flatMap(({ names }) => names),
  );
  const cases = commands.map((one) => `    ${one.name}) words='${wordsOf(one)}' ;;`);
  return `# bash completion for weir; made by: weir completion bash
_weir() {
  local current=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} words
  COMPREPLY=()
  case $before in
    ${[...takers].join("|")}) return ;;
  esac
  case \${COMP_WORDS[1]} in
${cases.join("\n")}
    *) words='${namesOf(flags).join(" ")}' ;;
  esac
  [ "$COMP_CWORD" -eq 1 ] && words='${commands.map(({ name }) => name).join(" ")} ${namesOf(flags).join(" ")}'
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _weir weir
`;
}

/** Inside single quotes; a colon ends the word that is described. */
const zshText = (word: string, text: string): string =>
  `'${word.replaceAll(":", "\\:")}:${text.replaceAll("'", `'\\''`)}'`;

const zshFlags = (flags: readonly FlagOutline[]): readonly string[] =>
  flags.flatMap(({ names, help }) => names.map((name) => zshText(name, help)));

function zsh({ commands, flags }: Outline): string {
  const cases = commands.map((one) => {
    const offered = [...one.verbs.map((verb) => zshText(verb, one.name)), ...zshFlags(one.flags)];
    return `      ${one.name}) offered=(${offered.join(" ")}) ;;`;
  });
  const first = commands.map(({ name, summary }) => zshText(name, summary));
  return `#compdef weir
# zsh completion for weir; made by: weir completion zsh
_weir() {
  local -a offered
  if (( CURRENT == 2 )); then
    offered=(${[...first, ...zshFlags(flags)].join(" ")})
  else
    case \${words[2]} in
${cases.join("\n")}
      *) offered=(${zshFlags(flags).join(" ")}) ;;
    esac
  fi
  _describe weir offered
  _files
}
_weir "$@"
`;
}

/** Inside single quotes. */
const fishText = (text: string): string => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;

function fish({ commands, flags }: Outline): string {
  const line = (condition: string, { names, value, help }: FlagOutline): string => {
    const options = names.map((name) =>
      name.startsWith("--") ? `-l ${name.slice(2)}` : `-o ${name.slice(1)}`,
    );
    return `complete -c weir -n ${condition} ${options.join(" ")}${value === null ? "" : " -r"} -d ${fishText(help)}`;
  };
  const blocks = commands.flatMap((one) => {
    const inside = fishText(`__fish_seen_subcommand_from ${one.name}`);
    return [
      `complete -c weir -n __fish_use_subcommand -a ${one.name} -d ${fishText(one.summary)}`,
      ...(one.verbs.length === 0
        ? []
        : [`complete -c weir -n ${inside} -a ${fishText(one.verbs.join(" "))}`]),
      ...one.flags.map((flag) => line(inside, flag)),
    ];
  });
  const own = flags.map((flag) => line("__fish_use_subcommand", flag));
  return `# fish completion for weir; made by: weir completion fish\n${[...own, ...blocks].join("\n")}\n`;
}
