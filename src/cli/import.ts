import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { stringify } from "yaml";
import { parseConfig } from "#config/parse.ts";
import { safePathEnvironment } from "#config/safe-path.ts";
import { ConfigError } from "#core/errors.ts";
import { SILENT } from "#core/log.ts";
import type { Protocol } from "#core/protocol.ts";
import { assemble, type Assembled } from "#migration/assemble.ts";
import { LeftOut, type Imported } from "#migration/imported.ts";
import { parseObject } from "#migration/json.ts";
import { readMarzban } from "#migration/marzban.ts";
import { openForeign } from "#migration/sqlite.ts";
import { readThreeXUi } from "#migration/three-x-ui.ts";
import { readXray } from "#migration/xray.ts";
import { PROTOCOLS } from "#protocols/index.ts";
import { listenerFaults } from "#runtime/dry-run.ts";
import { parseFlags, usageText, UsageError, type FlagTable, type ParsedFlags } from "./flags.ts";
import { linesOf } from "./load.ts";
import { openParseEnv } from "./parse-env.ts";

const FLAGS: FlagTable = {
  d: {
    kind: "text",
    value: "DIR",
    help: "where config.yaml and users.json are written (the present folder)",
  },
  "dry-run": { kind: "switch", help: "only say what would be taken and what not" },
  force: { kind: "switch", help: "replace config.yaml and users.json where they are there" },
  "public-base-url": {
    kind: "text",
    value: "URL",
    help: "where clients reach this server, for subscriptions",
  },
  xray: { kind: "text", value: "FILE", help: "marzban: its xray_config.json, which has the inbounds" },
};

interface Env {
  readonly protocols: readonly Protocol[];
  readonly report: LeftOut;
  readonly nowMs: number;
}

type Reader = (path: string, flags: ParsedFlags, env: Env) => Imported;

const SOURCES: Readonly<Record<string, Reader>> = {
  "3x-ui"(path, _flags, env) {
    using database = openForeign(path);
    return readThreeXUi(database, env);
  },
  marzban(path, flags, env) {
    const file = flags.text("xray");
    if (file === null)
      throw new UsageError(`import marzban: the inbounds are missing: -xray xray_config.json`);
    const xray = parseObject(readText(file), file);
    using database = openForeign(path);
    return readMarzban(database, { ...env, xray });
  },
  xray: (path, _flags, env) => readXray(parseObject(readText(path), path), env),
};

export const IMPORT_USAGE = usageText(
  `usage: weir import ${Object.keys(SOURCES).join("|")} [flags] FILE

Writes config.yaml and users.json, and prints what could not be taken, a line each.
Exit code: 0 all was taken, 3 not all was, 1 nothing is written, 2 wrong words.
`,
  FLAGS,
);

/** What was written is not all that the other program had. */
const NOT_ALL = 3;

/** `weir import SOURCE FILE`: reads what another program keeps, and writes files of ours. */
export async function importCommand(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const [word = "", ...others] = args;
  const read = Object.hasOwn(SOURCES, word) ? SOURCES[word] : undefined;
  if (read === undefined) throw new UsageError(IMPORT_USAGE);
  const { path, flags } = wordsOf(others, env);
  const folder = resolve(flags.text("d") ?? ".");
  const files = { configuration: join(folder, "config.yaml"), document: join(folder, "users.json") };
  const isDry = flags.on("dry-run");
  if (!isDry && !flags.on("force")) refuseExisting(Object.values(files));
  const report = new LeftOut();
  const nowMs = Date.now();
  const imported = read(path, flags, { protocols: PROTOCOLS, report, nowMs });
  const publicBaseUrl = flags.text("public-base-url") ?? "";
  const made = assemble(imported, { protocols: PROTOCOLS, report, publicBaseUrl, store: "users.db", nowMs });
  const text = stringify(made.configuration, { lineWidth: 0 });
  report.lines.push(...(await faultsOf(text, folder, files.configuration, env)));
  if (!isDry) {
    write(files.configuration, text, flags.on("force"));
    write(files.document, `${JSON.stringify(made.document)}\n`, flags.on("force"));
  }
  process.stdout.write(
    report.lines.map((line) => `${line}\n`).join("") + summaryOf(made, isDry ? null : files),
  );
  return report.lines.length === 0 ? 0 : NOT_ALL;
}

/** Flags stand in front of the file or behind it. */
function wordsOf(words: readonly string[], env: NodeJS.ProcessEnv): { path: string; flags: ParsedFlags } {
  const { rest } = parseFlags(words, FLAGS, env);
  const [path, ...behind] = rest;
  const flags = parseFlags([...words.slice(0, words.length - rest.length), ...behind], FLAGS, env);
  if (path === undefined || flags.rest.length > 0) throw new UsageError(IMPORT_USAGE);
  return { path, flags };
}

function refuseExisting(paths: readonly string[]): void {
  const there = paths.find((path) => existsSync(path));
  if (there !== undefined)
    throw new UsageError(`import: ${there} is there already; -force replaces it, -d names another folder`);
}

/** What reading and opening the configuration would complain of, by its own keys. */
async function faultsOf(text: string, home: string, file: string, env: NodeJS.ProcessEnv) {
  const settings = { home, ...safePathEnvironment(env), geodataMode: false, source: file };
  const parseEnv = openParseEnv(settings, SILENT);
  const result = parseConfig(text, parseEnv);
  const lines = linesOf("config.yaml", [...(result.errors ?? []), ...result.warnings]);
  if (result.config === undefined) return lines;
  const faults = await listenerFaults(result.config, parseEnv.files);
  return [...lines, ...faults.map((fault) => `config.yaml: ${fault}`)];
}

/** Both files hold credentials: others cannot read them. */
function write(path: string, text: string, replaces: boolean): void {
  if (replaces) rmSync(path, { force: true });
  writeFileSync(path, text, { flag: "wx", mode: 0o600 });
}

const MOST_TEXT_BYTES = 64 * 1024 * 1024;

function readText(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats?.isFile() !== true) throw new ConfigError(`${path}: there is no such file`);
  if (stats.size > MOST_TEXT_BYTES) throw new ConfigError(`${path}: the file is larger than 64 MiB`);
  return readFileSync(path, "utf8");
}

function summaryOf(
  { listeners, managedUsers, fixedUsers }: Assembled,
  files: { readonly configuration: string; readonly document: string } | null,
): string {
  const what = `${listeners} listeners, ${managedUsers} managed users, ${fixedUsers} users in the configuration\n`;
  if (files === null) return `${what}nothing is written (-dry-run)\n`;
  const next =
    managedUsers === 0
      ? ""
      : `next: weir users import ${files.document} ${files.document.replace(/json$/, "db")}\n`;
  return `${what}${files.configuration}\n${files.document}\n${next}`;
}
