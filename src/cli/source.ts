import { existsSync, lstatSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { decodeConfig } from "#config/encoding.ts";
import { ConfigError, messageOf } from "#core/errors.ts";
import { makeFolder } from "#platform/make-folder.ts";
import type { ParsedFlags } from "./flags.ts";

/** Where the configuration comes from; `read` gives its text anew each time. */
export interface Source {
  /** What messages call it; null where it has no name that helps (standard input, `-config`). */
  readonly file: string | null;
  /** There was no file: this is the one that was made, or would be. */
  readonly isNew?: "made" | "imagined";
  /** The built-in default: it has no secret of its own, so one is made at every start. */
  readonly embedded?: true;
  read(): string;
}

/** `npm start` without arguments: useful at once, writes nothing. */
const EMBEDDED = `mixed-port: 7890
external-controller: 127.0.0.1:9090
mode: rule
log-level: info
rules:
  - MATCH,DIRECT
`;

const FIRST_FILE = "mixed-port: 7890\n";

/** The home directory: `-d`, else the ecosystem's place, so that what people have there is found. */
export function homeOf(flags: ParsedFlags, env: NodeJS.ProcessEnv): string {
  const given = flags.text("d");
  if (given !== null) return resolve(given);
  const usual = join(homedir(), ".config", "mihomo");
  const fallback = env["XDG_CONFIG_HOME"];
  return existsSync(usual) || !fallback ? usual : join(fallback, "mihomo");
}

/** For users who did not expect a new file. */
export function newFileText({ file, isNew }: Source): string {
  const made = isNew === "made" ? `${file} was made` : `a start makes ${file}`;
  return `there was no configuration: ${made}, with ${FIRST_FILE.trim()}`;
}

/** Throws `ConfigError` where the home directory cannot be read or made. A missing default file is made if it `writes`. */
export function sourceOf(flags: ParsedFlags, home: string, writes: boolean): Source {
  const inline = flags.text("config");
  if (inline !== null) {
    const text = decodeConfig(Buffer.from(inline, "base64"), "configuration");
    return { file: null, read: () => text };
  }
  const file = flags.text("f");
  if (file === "-") {
    const text = decodeConfig(readFileSync(0), "configuration"); // standard input can be read once; a reload sees the same text
    return { file: null, read: () => text };
  }
  if (file !== null) return fileSource(resolve(file));
  if (flags.on("embedded") && flags.text("d") === null)
    return { file: null, embedded: true, read: () => EMBEDDED };
  const usual = join(home, "config.yaml");
  try {
    if (statSync(home, { throwIfNoEntry: false })?.isDirectory() === false)
      throw new Error("it is no folder");
    if (lstatSync(usual, { throwIfNoEntry: false }) !== undefined) return fileSource(usual);
    if (!writes) return { file: usual, isNew: "imagined", read: () => FIRST_FILE };
    makeFolder(home);
    writeFileSync(usual, FIRST_FILE, { flag: "wx" });
  } catch (error) {
    throw new ConfigError(`cannot use ${home} as the home directory: ${messageOf(error)}`, { cause: error });
  }
  return { ...fileSource(usual), isNew: "made" };
}

function fileSource(file: string): Source {
  return { file, read: () => readConfigFile(file) };
}

/** A start waits for it, about half a second a MiB on a small machine. */
const MAX_FILE_BYTES = 16 * 1024 * 1024;

/** Throws `ConfigError` where there is nothing to read. */
export function readConfigFile(file: string): string {
  let text: string;
  try {
    const stat = statSync(file, { throwIfNoEntry: false });
    if (stat === undefined) throw new ConfigError(`cannot read the configuration: there is no ${file}`);
    if (stat.isDirectory())
      throw new ConfigError(`cannot read the configuration: ${file} is a folder (-d names a home directory)`);
    const { size } = stat;
    if (size > MAX_FILE_BYTES)
      throw new ConfigError(
        `${file}: ${Math.ceil(size / 1024 / 1024)} MiB; a configuration has at most 16 MiB: long lists belong into providers`,
      );
    text = decodeConfig(readFileSync(file), file);
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    throw new ConfigError(`cannot read the configuration: ${messageOf(error)}`, { cause: error });
  }
  if (text.trim() === "")
    throw new ConfigError(
      `${file}: the file is empty; a configuration has at least one key, such as mixed-port: 7890`,
    );
  return text;
}
