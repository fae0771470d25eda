import { RUN_FLAGS } from "./run-flags.ts";
import { FlagError, parseFlags, usageText, UsageError } from "./flags.ts";
import { acceptRollbackOf } from "./accept-rollback.ts";
import { AUDIT_USAGE, auditCommand } from "./audit.ts";
import { BACKUP_USAGE, backupCommand } from "./backup.ts";
import { check } from "./check.ts";
import { CLEAN_UP_USAGE, cleanUpCommand } from "./clean-up.ts";
import { convertRuleset } from "./convert-ruleset.ts";
import { DOCTOR_USAGE, doctorCommand } from "./doctor.ts";
import { EXPLAIN_USAGE, explainCommand } from "./explain.ts";
import { FLEET_USAGE, fleetCommand } from "./fleet.ts";
import { generate, GENERATE_USAGE } from "./generate.ts";
import { IMPORT_USAGE, importCommand } from "./import.ts";
import { link, LINK_USAGE } from "./link.ts";
import { probeTarget, PROBE_TARGET_USAGE } from "./probe-target.ts";
import { RESTORE_USAGE, restoreCommand } from "./restore.ts";
import { run } from "./run.ts";
import { schema } from "./schema.ts";
import { TOKEN_USAGE, tokenCommand } from "./token.ts";
import { users } from "./users.ts";
import { versionLine } from "#version.ts";

/** A subcommand is the first word; its own flags and words follow. It answers with the exit code. */
interface Command {
  readonly usage: string;
  /** Where it takes flags. */
  readonly help?: string;
  run(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> | number;
}

const COMMANDS: Readonly<Record<string, Command>> = {
  explain: {
    usage: "explain HOST[:PORT]|URL say which rule decides and why the earlier ones do not",
    help: EXPLAIN_USAGE,
    run: explainCommand,
  },
  schema: {
    usage: "schema                  print the JSON Schema of the configuration, for editors",
    run: schema,
  },
  link: {
    usage: "link [LINK…]            print the links of the listeners, or the nodes of links as YAML",
    help: LINK_USAGE,
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
  fleet: {
    usage: "fleet check|migrate|…   the database that the nodes of a fleet share",
    help: FLEET_USAGE,
    run: fleetCommand,
  },
  token: {
    usage: "token create|list|…     scoped tokens for the API",
    help: TOKEN_USAGE,
    run: tokenCommand,
  },
  audit: {
    usage: "audit verify|export     the log of who changed what",
    help: AUDIT_USAGE,
    run: auditCommand,
  },
  backup: {
    usage: "backup FILE             everything that the running weir keeps, in one file",
    help: BACKUP_USAGE,
    run: backupCommand,
  },
  restore: {
    usage: "restore FILE            a backup back to the disk, for a weir that does not run",
    help: RESTORE_USAGE,
    run: restoreCommand,
  },
  doctor: {
    usage: "doctor                  what of this machine is in the way of the configuration, and what to do",
    help: DOCTOR_USAGE,
    run: doctorCommand,
  },
  import: {
    usage: "import SOURCE FILE      take users and listeners over from another program",
    help: IMPORT_USAGE,
    run: importCommand,
  },
  "accept-rollback": {
    usage: "accept-rollback STORE   say that a store that came back older is meant",
    run: acceptRollbackOf,
  },
  cleanup: {
    usage: "cleanup [flags]         take away the ip rules and nftables of a weir that was killed",
    help: CLEAN_UP_USAGE,
    run: cleanUpCommand,
  },
  generate: {
    usage: GENERATE_USAGE,
    run: generate,
  },
  "probe-target": {
    usage: "probe-target HOST…      which sites can be dest of a REALITY server, the best one first",
    help: PROBE_TARGET_USAGE,
    run: probeTarget,
  },
};

const USAGE = usageText(
  `usage: weir [flags]            run
       weir COMMAND …

commands:
${Object.values(COMMANDS)
  .map(({ usage }) => `  ${usage}`)
  .join("\n")}

flags:`,
  RUN_FLAGS,
);

const HELP: readonly string[] = ["-h", "--h", "-help", "--help"];

/** The program's words without its own name. Throws `UsageError` where they are wrong. */
export async function runCommand(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const [first = "", ...others] = commandFirst(args);
  const command = COMMANDS[first];
  const usage = command === undefined ? USAGE : (command.help ?? `usage: weir ${command.usage}\n`);
  if (first === "help" || (command !== undefined && HELP.includes(others[0] ?? ""))) return print(usage);
  try {
    return await (command === undefined ? runMain(args, env) : command.run(others, env));
  } catch (error) {
    if (error instanceof FlagError) throw new UsageError(`${error.message}\n${usage}`);
    throw error;
  }
}

/** `npm start` puts its own flag first, which is about running only. */
function commandFirst(args: readonly string[]): readonly string[] {
  const [flag, word = ""] = args;
  return flag === "--embedded" && (word in COMMANDS || word === "help") ? args.slice(1) : args;
}

function runMain(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> | number {
  const flags = parseFlags(args, RUN_FLAGS, env);
  if (flags.on("h")) return print(USAGE);
  if (flags.on("v")) return print(`${versionLine()}\n`);
  const stray = flags.rest[0];
  if (stray !== undefined && stray in COMMANDS)
    throw new UsageError(`a command comes first, its flags behind it: weir ${stray} …`);
  if (stray !== undefined)
    throw new UsageError(`unknown command ${stray}; known: ${Object.keys(COMMANDS).join(", ")}`);
  return flags.on("t") ? check(flags, env) : run(flags, env);
}

function print(text: string): number {
  process.stdout.write(text);
  return 0;
}
