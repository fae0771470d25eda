import { existsSync, mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { writeWhole } from "#backup/write.ts";
import { parseConfig, type ParseEnv } from "#config/parse.ts";
import { safePathEnvironment } from "#config/safe-path.ts";
import type { SafeFiles } from "#core/files.ts";
import { SILENT } from "#core/log.ts";
import { LeftOut } from "#migration/imported.ts";
import type { Json } from "#migration/json.ts";
import { PROTOCOLS } from "#protocols/index.ts";
import { replaceFile } from "#providers/replace-file.ts";
import { listenerFaults } from "#runtime/dry-run.ts";
import { parseFlags, usageText, UsageError, type FlagTable, type ParsedFlags } from "./flags.ts";
import { withoutFaults } from "./import-repair.ts";
import { FORMER_FILE, SOURCES } from "./import-sources.ts";
import { linesOf } from "./load.ts";
import { openParseEnv } from "./parse-env.ts";

const FLAGS: FlagTable = {
  d: {
    kind: "text",
    value: "DIR",
    help: "where files are written, made where it is missing (the present folder)",
  },
  "dry-run": { kind: "switch", help: "only say what would be taken and what not" },
  force: { kind: "switch", help: "replace files that are there" },
  "public-base-url": {
    kind: "text",
    value: "URL",
    help: "where clients reach this server, for subscriptions",
  },
  xray: { kind: "text", value: "FILE", help: "marzban: its xray_config.json, which has the inbounds" },
  "sub-path": {
    kind: "text",
    value: "PATH",
    help: "marzban: XRAY_SUBSCRIPTION_PATH of its environment (sub)",
  },
};

export const IMPORT_USAGE = usageText(
  `usage: weir import ${Object.keys(SOURCES).join("|")} [flags] FILE

Writes config.yaml, of users who are managed users.json, and of subscriptions that they had there
former-subscriptions.json; prints what could not be taken, a line each.
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
  const at = (name: string): string => join(folder, name);
  const isDry = flags.on("dry-run");
  if (!isDry && !flags.on("force")) refuseExisting(FILES.map(at));
  const report = new LeftOut();
  const draft = read(path, flags, { protocols: PROTOCOLS, report, nowMs: Date.now() });
  const settings = {
    home: folder,
    ...safePathEnvironment(env),
    geodataMode: false,
    source: at("config.yaml"),
  };
  const parseEnv = openParseEnv(settings, SILENT);
  const text = withoutFaults(draft.text, parseEnv, report);
  report.lines.push(...(await faultsOf(text, parseEnv)));
  const contents = [text, jsonText(draft.users), jsonText(draft.former)];
  const files = FILES.flatMap((name, index) => {
    const content = contents[index] ?? null;
    return content === null ? [] : [{ path: at(name), content }];
  });
  if (!isDry) mkdirSync(folder, { recursive: true, mode: 0o700 });
  const write = flags.on("force") ? replaceFile : writeWhole; // all of them hold credentials: others cannot read them
  if (!isDry) for (const { path: target, content } of files) await write(target, Buffer.from(content));
  const lines = [...report.lines, draft.summary];
  if (isDry) lines.push("nothing is written (-dry-run)");
  else lines.push(...files.map((file) => file.path));
  if (!isDry && draft.users !== null)
    lines.push(`next: weir users import ${at("users.json")} ${at("users.db")}`);
  process.stdout.write(`${lines.join("\n")}\n`);
  return report.lines.length === 0 ? 0 : NOT_ALL;
}

const FILES = ["config.yaml", "users.json", FORMER_FILE] as const;

const jsonText = (value: Json | null): string | null =>
  value === null ? null : `${JSON.stringify(value)}\n`;

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
async function faultsOf(
  text: string,
  env: ParseEnv & { readonly files: SafeFiles },
): Promise<readonly string[]> {
  const result = parseConfig(text, env);
  const lines = linesOf("config.yaml", [...(result.errors ?? []), ...result.warnings]);
  if (result.config === undefined) return lines;
  const faults = await listenerFaults(result.config, env.files);
  return [...lines, ...faults.map(({ what }) => `config.yaml: ${what}`)];
}
