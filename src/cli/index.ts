import type { Outline } from "./completion.ts";
import { RUN_FLAGS } from "./run-flags.ts";
import { FlagError, parseFlags, usageText, UsageError } from "./flags.ts";
import { run } from "./run.ts";
import { suggestion } from "#lib/nearest-word.ts";
import { versionLine } from "#version.ts";

/** What a subcommand's own file says. */
interface Program {
  /** Where it takes flags. */
  readonly help?: string;
  run(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> | number;
}

/** A subcommand is the first word; its own flags and words follow. It answers with the exit code. */
interface Command {
  readonly usage: string;
  /** Each is loaded when it is asked for: a start needs none. */
  load(): Promise<Program>;
}

const COMMANDS: Readonly<Record<string, Command>> = {
  explain: {
    usage: "explain HOST[:PORT]|URL say which rule decides and why the earlier ones do not",
    load: async () => {
      const { EXPLAIN_USAGE, explainCommand } = await import("./explain.ts");
      return { help: EXPLAIN_USAGE, run: explainCommand };
    },
  },
  schema: {
    usage: "schema                  print the JSON Schema of the configuration, for editors",
    load: async () => {
      const { schema } = await import("./schema.ts");
      return { run: schema };
    },
  },
  link: {
    usage: "link [LINK…]            print the links of the listeners, or the nodes of links as YAML",
    load: async () => {
      const { LINK_USAGE, link } = await import("./link.ts");
      return { help: LINK_USAGE, run: link };
    },
  },
  "convert-ruleset": {
    usage: "convert-ruleset …       turn a rule list (domain or ipcidr) into mrs, or mrs into text",
    load: async () => {
      const { convertRuleset } = await import("./convert-ruleset.ts");
      return { run: convertRuleset };
    },
  },
  users: {
    usage: "users export|import …   a state file of managed users as one JSON document, and back",
    load: async () => {
      const { users } = await import("./users.ts");
      return { run: users };
    },
  },
  fleet: {
    usage: "fleet check|migrate|…   the database that the nodes of a fleet share",
    load: async () => {
      const { FLEET_USAGE, fleetCommand } = await import("./fleet.ts");
      return { help: FLEET_USAGE, run: fleetCommand };
    },
  },
  token: {
    usage: "token create|list|…     scoped tokens for the API",
    load: async () => {
      const { TOKEN_USAGE, tokenCommand } = await import("./token.ts");
      return { help: TOKEN_USAGE, run: tokenCommand };
    },
  },
  totp: {
    usage: "totp FILE               a secret of one-time codes for the dashboard",
    load: async () => {
      const { TOTP_USAGE, totpCommand } = await import("./totp.ts");
      return { help: TOTP_USAGE, run: totpCommand };
    },
  },
  audit: {
    usage: "audit verify|export     the log of who changed what",
    load: async () => {
      const { AUDIT_USAGE, auditCommand } = await import("./audit.ts");
      return { help: AUDIT_USAGE, run: auditCommand };
    },
  },
  backup: {
    usage: "backup FILE             everything that the running weir keeps, in one file",
    load: async () => {
      const { BACKUP_USAGE, backupCommand } = await import("./backup.ts");
      return { help: BACKUP_USAGE, run: backupCommand };
    },
  },
  restore: {
    usage: "restore FILE            a backup back to the disk, for a weir that does not run",
    load: async () => {
      const { RESTORE_USAGE, restoreCommand } = await import("./restore.ts");
      return { help: RESTORE_USAGE, run: restoreCommand };
    },
  },
  upgrade: {
    usage: "upgrade                 another version takes over from the running weir",
    load: async () => {
      const { UPGRADE_USAGE, upgradeCommand } = await import("./upgrade.ts");
      return { help: UPGRADE_USAGE, run: upgradeCommand };
    },
  },
  update: {
    usage: "update                  the newest signed version takes the place of this one",
    load: async () => {
      const { UPDATE_USAGE, updateCommand } = await import("./update.ts");
      return { help: UPDATE_USAGE, run: updateCommand };
    },
  },
  doctor: {
    usage: "doctor                  what of this machine is in the way of the configuration, and what to do",
    load: async () => {
      const { DOCTOR_USAGE, doctorCommand } = await import("./doctor.ts");
      return { help: DOCTOR_USAGE, run: doctorCommand };
    },
  },
  top: {
    usage: "top                     connections, users, policies and rates of the running weir, live",
    load: async () => {
      const { TOP_USAGE, topCommand } = await import("./top.ts");
      return { help: TOP_USAGE, run: topCommand };
    },
  },
  report: {
    usage:
      "report                  what was counted: a month as a page for mail, or a series as CSV or NDJSON",
    load: async () => {
      const { REPORT_USAGE, reportCommand } = await import("./report.ts");
      return { help: REPORT_USAGE, run: reportCommand };
    },
  },
  import: {
    usage: "import SOURCE FILE      take users, listeners, nodes and rules over from another program",
    load: async () => {
      const { IMPORT_USAGE, importCommand } = await import("./import.ts");
      return { help: IMPORT_USAGE, run: importCommand };
    },
  },
  "accept-rollback": {
    usage: "accept-rollback STORE   say that a store that came back older is meant",
    load: async () => {
      const { acceptRollbackOf } = await import("./accept-rollback.ts");
      return { run: acceptRollbackOf };
    },
  },
  cleanup: {
    usage: "cleanup [flags]         take away the ip rules and nftables of a weir that was killed",
    load: async () => {
      const { CLEAN_UP_USAGE, cleanUpCommand } = await import("./clean-up.ts");
      return { help: CLEAN_UP_USAGE, run: cleanUpCommand };
    },
  },
  generate: {
    usage: "generate KIND           print fresh key material: weir generate -h names the kinds",
    load: async () => {
      const { generate, GENERATE_USAGE } = await import("./generate.ts");
      return { help: GENERATE_USAGE, run: generate };
    },
  },
  "probe-target": {
    usage: "probe-target HOST…      which sites can be dest of a REALITY server, the best one first",
    load: async () => {
      const { PROBE_TARGET_USAGE, probeTarget } = await import("./probe-target.ts");
      return { help: PROBE_TARGET_USAGE, run: probeTarget };
    },
  },
  completion: {
    usage: "completion SHELL        print a script that completes weir's words in bash, zsh or fish",
    load: async () => {
      const { COMPLETION_USAGE, completion } = await import("./completion.ts");
      return { help: COMPLETION_USAGE, run: async (args) => completion(args, await commandLine()) };
    },
  },
  man: {
    usage: "man                     print the manual page",
    load: async () => {
      const { MAN_USAGE, man } = await import("./man.ts");
      return { help: MAN_USAGE, run: async () => man(await commandLine()) };
    },
  },
};

/** All that the command line understands. */
export async function commandLine(): Promise<Outline> {
  const { commandOutline, flagsOf } = await import("./outline.ts");
  const commands = Object.values(COMMANDS).map(async (command) =>
    commandOutline(command.usage, helpOf(command, await command.load())),
  );
  return { commands: await Promise.all(commands), flags: flagsOf(USAGE) };
}

const helpOf = ({ usage }: Command, { help }: Program): string => help ?? `usage: weir ${usage}\n`;

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
  const known = Object.hasOwn(COMMANDS, first) ? COMMANDS[first] : undefined;
  const command = await known?.load();
  const usage = known === undefined || command === undefined ? USAGE : helpOf(known, command);
  if (first === "help" || (command !== undefined && asksForHelp(others))) return print(usage);
  try {
    return await (command === undefined ? runMain(args, env) : command.run(others, env));
  } catch (error) {
    if (error instanceof FlagError) throw new UsageError(`${error.message}\n${usage}`);
    throw error;
  }
}

/** `weir token -help` and `weir token create -help`. */
const asksForHelp = (words: readonly string[]): boolean =>
  words.slice(0, 2).some((word) => HELP.includes(word));

/** `npm start` puts its own flag first, which is about running only. */
function commandFirst(args: readonly string[]): readonly string[] {
  const [flag, word = ""] = args;
  return flag === "--embedded" && (word in COMMANDS || word === "help") ? args.slice(1) : args;
}

async function runMain(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const flags = parseFlags(args, RUN_FLAGS, env);
  if (flags.on("h")) return print(USAGE);
  if (flags.on("v")) return print(`${versionLine()}\n`);
  const stray = flags.rest[0];
  if (stray !== undefined && stray in COMMANDS)
    throw new UsageError(`a command comes first, its flags behind it: weir ${stray} …`);
  if (stray !== undefined)
    throw new UsageError(
      `unknown command ${stray}${insteadOf(stray)}; known: ${Object.keys(COMMANDS).join(", ")}`,
    );
  if (!flags.on("t")) return run(flags, env);
  const { check } = await import("./check.ts");
  return check(flags, env);
}

/** What people try who know other programs, and how it goes here. */
const FLAG_INSTEAD: Readonly<Record<string, string>> = {
  check: "weir -t checks a configuration",
  test: "weir -t checks a configuration",
  validate: "weir -t checks a configuration",
  run: "weir alone runs",
  start: "weir alone runs",
  version: "weir -v says the version",
};

function insteadOf(word: string): string {
  const flag = Object.hasOwn(FLAG_INSTEAD, word) ? FLAG_INSTEAD[word] : undefined;
  return flag === undefined ? suggestion(word, Object.keys(COMMANDS)) : `: ${flag}, see weir -h`;
}

function print(text: string): number {
  process.stdout.write(text);
  return 0;
}
