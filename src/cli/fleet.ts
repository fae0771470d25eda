import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { Client } from "pg";
import type { Config } from "#config/config.ts";
import { ConfigError } from "#core/errors.ts";
import { SILENT } from "#core/log.ts";
import type * as fleetModule from "#fleet/index.ts";
import { fleetSettings } from "#runtime/user-settings.ts";
import { Store } from "#store/backup.ts";
import type { FleetSettings } from "#users/fleet-settings.ts";
import { PARTS } from "#users/records.ts";
import { parseFlags, usageText, UsageError, type FlagTable, type ParsedFlags } from "./flags.ts";
import { linesOf, setUp } from "./load.ts";
import { SOURCE_FLAGS } from "./run-flags.ts";

const FLAGS: FlagTable = {
  ...SOURCE_FLAGS,
  "dry-run": { kind: "switch", help: "migrate, import, export: try it and keep nothing" },
  writes: { kind: "switch", help: "allow: the login may change users, too" },
};

export const FLEET_USAGE = usageText(
  `usage: weir fleet check [flags]             say whether this node can take part, and what is missing
       weir fleet migrate [flags]           make or renew the schema, as an owner of the database
       weir fleet allow [flags] LOGIN LISTENER…  what a login sees; no listener: nothing, *: all
       weir fleet import [flags] STATE      the users of a state file, whose weir is not running
       weir fleet export [flags] STATE      all users as a new state file

The database is that of svc.fleet in the configuration; WEIR_FLEET_DSN, where neither dsn nor dsn-file is there.
`,
  FLAGS,
);

type Fleet = typeof fleetModule;

interface Context {
  readonly fleet: Fleet;
  readonly client: Client;
  readonly svc: NonNullable<Config["svc"]>;
  readonly settings: FleetSettings;
  readonly flags: ParsedFlags;
  readonly words: readonly string[];
}

type Verb = (context: Context) => Promise<number>;

const VERBS: Readonly<Record<string, Verb>> = {
  check,
  migrate,
  allow,
  import: importUsers,
  export: exportUsers,
};

/** `weir fleet VERB`: what an operator does with the database of a fleet. */
export async function fleetCommand(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const [word = "", ...others] = args;
  const verb = Object.hasOwn(VERBS, word) ? VERBS[word] : undefined;
  if (verb === undefined) throw new UsageError(FLEET_USAGE);
  const flags = parseFlags(others, FLAGS, env);
  const { svc, settings } = settingsOf(flags, env);
  const fleet = await import("#fleet/index.ts");
  const options = fleet.databaseOptions(settings, env);
  try {
    const client = await fleet.connect(options);
    try {
      return await verb({ fleet, client, svc, settings, flags, words: flags.rest });
    } finally {
      await client.end();
    }
  } catch (error) {
    if (error instanceof ConfigError || error instanceof UsageError) throw error;
    throw new Error(`fleet ${word}: ${fleet.reasonOf(error)}`, { cause: error });
  }
}

function settingsOf(flags: ParsedFlags, env: NodeJS.ProcessEnv): Pick<Context, "svc" | "settings"> {
  const setup = setUp(flags, env, SILENT);
  const { file, result } = setup.first();
  if (result.errors !== undefined) throw new ConfigError(linesOf(file, result.errors).join("\n"));
  const { svc } = result.config;
  const settings = svc === null ? null : fleetSettings(svc, setup.files);
  if (svc === null || settings === null) throw new ConfigError(`${file}: there is no svc.fleet`);
  return { svc, settings };
}

async function check({ fleet, client, svc }: Context): Promise<number> {
  const { lines, missing } = await fleet.checkDatabase(client, svc.managedListeners);
  const text = [...lines, ...missing.map((what) => `missing: ${what}`)];
  print(missing.length === 0 ? [...text, "this node can take part"] : text);
  return missing.length === 0 ? 0 : 1;
}

async function migrate({ fleet, client, flags }: Context): Promise<number> {
  const isDry = flags.on("dry-run");
  const { from, to } = await fleet.migrate(client, { isDry });
  print([from === to ? `schema: version ${to} already` : `schema: version ${from} to ${to}`, ...kept(isDry)]);
  return 0;
}

async function allow({ client, flags, words }: Context): Promise<number> {
  const [login, ...listeners] = words;
  if (login === undefined) throw new UsageError("fleet allow: expected LOGIN LISTENER…");
  await client.query("SELECT weir.allow($1, $2, $3)", [login, listeners, flags.on("writes")]);
  const rights = flags.on("writes") ? "sees and changes" : "sees";
  print([listeners.length === 0 ? `${login} sees nothing` : `${login} ${rights} ${listeners.join(", ")}`]);
  return 0;
}

async function importUsers({ fleet, client, svc, settings, flags, words }: Context): Promise<number> {
  const path = stateOf(words, "import");
  if (!existsSync(path)) throw new UsageError(`fleet import: there is no ${path}`);
  await fleet.refuseOtherSchema(client);
  using store = Store.open({ path, parts: PARTS, nowMs: Date.now, log: SILENT });
  const isDry = flags.on("dry-run");
  const seal = new fleet.TokenSeal(svc.secret);
  print([
    ...linesOfMove(await fleet.importState(client, store, { seal, node: settings.node, isDry })),
    ...kept(isDry),
  ]);
  return 0;
}

async function exportUsers({ fleet, client, svc, settings, flags, words }: Context): Promise<number> {
  const path = stateOf(words, "export");
  await fleet.refuseOtherSchema(client);
  const isDry = flags.on("dry-run");
  const moving = { seal: new fleet.TokenSeal(svc.secret), node: settings.node, isDry };
  using store =
    isDry && !existsSync(path) ? null : Store.open({ path, parts: PARTS, nowMs: Date.now, log: SILENT });
  print([...linesOfMove(await fleet.exportState(client, store, moving)), ...kept(isDry)]);
  return 0;
}

function stateOf(words: readonly string[], verb: string): string {
  const [path, ...more] = words;
  if (path === undefined || more.length > 0) throw new UsageError(`fleet ${verb}: expected one state file`);
  return resolve(path);
}

function linesOfMove({ done, present }: Awaited<ReturnType<Fleet["importState"]>>): readonly string[] {
  return [
    ...[...done].map(([tag, users]) => `listener ${tag}: ${users} ${users === 1 ? "user" : "users"}`),
    ...present.map((tag) => `listener ${tag}: is there already`),
  ];
}

function kept(isDry: boolean): readonly string[] {
  return isDry ? ["nothing is kept (-dry-run)"] : [];
}

function print(lines: readonly string[]): void {
  process.stdout.write(lines.map((line) => `${line}\n`).join(""));
}
