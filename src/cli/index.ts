import { RUN_FLAGS } from "./run-flags.ts";
import { parseFlags, usageText, UsageError } from "./flags.ts";
import { check } from "./check.ts";
import { cleanUpCommand } from "./clean-up.ts";
import { convertRuleset } from "./convert-ruleset.ts";
import { explainCommand } from "./explain.ts";
import { generate } from "./generate.ts";
import { link } from "./link.ts";
import { run } from "./run.ts";
import { schema } from "./schema.ts";
import { users } from "./users.ts";
import { versionLine } from "#version.ts";

/** A subcommand is the first word; its own flags and words follow. It answers with the exit code. */
interface Command {
  readonly usage: string;
  run(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> | number;
}

const COMMANDS: Readonly<Record<string, Command>> = {
  explain: {
    usage: "explain HOST[:PORT]     say which rule decides and why the earlier ones do not",
    run: explainCommand,
  },
  schema: {
    usage: "schema                  print the JSON Schema of the configuration, for editors",
    run: schema,
  },
  link: {
    usage: "link [LINK…]            print the links of the listeners, or the nodes of links as YAML",
    run: link,
  },
  "convert-ruleset": {
    usage: "convert-ruleset …       turn a rule list (domain or ipcidr) into mrs, or mrs into text",
    run: convertRuleset,
  },
  users: {
    usage: "users export|import …   a state file of managed users as one JSON document, and back",
    run: users,
  },
  cleanup: {
    usage: "cleanup [flags]         take away the ip rules and nftables of a weir that was killed",
    run: cleanUpCommand,
  },
  generate: { usage: "generate uuid           print fresh key material", run: generate },
};

const HEAD = `usage: weir [flags]            run
       weir COMMAND …

commands:
${Object.values(COMMANDS)
  .map(({ usage }) => `  ${usage}`)
  .join("\n")}

flags:`;

export async function runCommand(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const command = COMMANDS[args[0] ?? ""];
  if (command !== undefined) return command.run(args.slice(1), env);
  const flags = withUsage(() => parseFlags(args, RUN_FLAGS, env));
  if (flags.on("h")) return print(usageText(HEAD, RUN_FLAGS));
  if (flags.on("v")) return print(`${versionLine()}\n`);
  const stray = flags.rest[0];
  if (stray !== undefined)
    throw new UsageError(`unknown command ${stray}; known: ${Object.keys(COMMANDS).join(", ")}`);
  return flags.on("t") ? check(flags, env) : run(flags, env);
}

function print(text: string): number {
  process.stdout.write(text);
  return 0;
}

function withUsage<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (error instanceof UsageError) throw new UsageError(`${error.message}\n${usageText(HEAD, RUN_FLAGS)}`);
    throw error;
  }
}
