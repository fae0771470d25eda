/** The reference of commands, docs/commands.md, from the usage texts. `npm run docs` writes it. */
import { join } from "node:path";
import { commandLine } from "#cli/index.ts";
import type { FlagOutline } from "#cli/outline.ts";

export const COMMANDS_PAGE = join(import.meta.dirname, "..", "docs", "commands.md");

const HEAD = `# Every command

Made from the usage texts by \`npm run docs\`; a test fails where this page is older than the program. \`weir COMMAND -h\` prints the same. \`weir man\` is the manual page; \`weir completion bash\`, \`zsh\` or \`fish\` prints a script that completes commands, their words and their flags:

\`\`\`sh
weir completion bash > /etc/bash_completion.d/weir
weir completion zsh > "\${fpath[1]}/_weir"
weir completion fish > ~/.config/fish/completions/weir.fish
weir man > /usr/local/share/man/man1/weir.1
\`\`\`

Exit codes: 0 it went well, 1 it did not and standard error says why, 2 the words are wrong.
`;

/** The page as it should be. */
export async function commandReference(): Promise<string> {
  const { commands, flags } = await commandLine();
  const table = flags.map(
    ({ names, value, help }) => `| ${code(names, value)} | ${help.replaceAll("|", "\\|")} |`,
  );
  const running = `## weir [flags]\n\nRuns: reads the configuration, opens listeners and the Controller.\n\n| flag | |\n|---|---|\n${table.join("\n")}\n`;
  const sections = commands.map(
    ({ name, summary, help }) => `## weir ${name}\n\n${capital(summary)}.\n\n\`\`\`\n${help}\n\`\`\`\n`,
  );
  return [HEAD, running, ...sections].join("\n");
}

function code(names: FlagOutline["names"], value: string | null): string {
  return names.map((name) => `\`${value === null ? name : `${name} ${value}`}\``).join(", ");
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
