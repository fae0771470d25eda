/** From flags to a configuration: what `run`, `-t` and `explain` have in common. */
import {
  closeSync,
  fchownSync,
  fsyncSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { fileFaults } from "#config/file-uses.ts";
import { formatDiagnostic, type Diagnostic } from "#config/report.ts";
import { patchConfig } from "#config/patch.ts";
import { parseConfig, type ParseEnv, type ParseResult } from "#config/parse.ts";
import { openSafeFiles, safePathEnvironment } from "#config/safe-path.ts";
import type { Config } from "#config/config.ts";
import { ApiError, ConfigError } from "#core/errors.ts";
import type { FileGuard, SafeFiles } from "#core/files.ts";
import type { Log } from "#core/log.ts";
import { GROUP_KINDS } from "#groups/index.ts";
import { PROTOCOLS } from "#protocols/index.ts";
import { RULE_TYPES } from "#router/rules/index.ts";
import { VERSION } from "#version.ts";
import type { Loader } from "#app/loader.ts";
import { openFileGuard } from "#host/file-guard.ts";
import type { ParsedFlags } from "./flags.ts";
import { homeOf, readConfigFile, sourceOf, type Source } from "./source.ts";

export interface Setup {
  readonly home: string;
  readonly source: Source;
  readonly files: SafeFiles;
  readonly guard: FileGuard;
  readonly loader: Loader;
}

export const REGISTRIES = { protocols: PROTOCOLS, groupKinds: GROUP_KINDS, ruleTypes: RULE_TYPES };

interface SetUpOptions {
  /** A first configuration is made where there is none. */
  readonly writes: boolean;
}

/** Throws where the source cannot be read at all. */
export function setUp(
  flags: ParsedFlags,
  env: NodeJS.ProcessEnv,
  log: Log,
  { writes }: SetUpOptions = { writes: false },
): Setup {
  const home = homeOf(flags, env);
  const files = openSafeFiles({ home, ...safePathEnvironment(env), log });
  const source = sourceOf(flags, home, writes);
  const guard = openFileGuard(home, source.file);
  const parseEnv: ParseEnv = {
    registries: REGISTRIES,
    files,
    userAgent: `clash.meta/${VERSION} weir`,
    geodataMode: flags.on("m"),
    guard,
  };
  const parse = (text: string): ParseResult => parseConfig(text, parseEnv);
  const loader: Loader = {
    current: () => ({ file: source.file ?? "configuration", result: parse(source.read()) }),
    path: (path) => ({ file: path, result: parse(readConfigFile(files.resolve(path))) }),
    text: (text) => ({ file: "payload", result: parse(text) }),
    patched: (config, fragment) => patchConfig(config, fragment, parseEnv),
    rewrite(edit) {
      if (source.file === null) throw new ApiError(400, "the configuration is no file that could be written");
      const next = edit(source.read());
      const { errors } = parse(next);
      if (errors !== undefined) throw new ConfigError(linesOf(source.file, errors).join("\n"));
      replaceFile(source.file, next);
    },
    refusePolicyStore(config, store) {
      const faults = fileFaults({ ...config, trafficControl: { store } }, config.fileUses, files, guard);
      const fault = faults.find(({ path }) => path[0] === "traffic-control");
      if (fault !== undefined) throw new ConfigError(fault.message.replaceAll(files.resolve(store), store));
    },
  };
  return { home, source, files, guard, loader };
}

/** Never half written; owner and mode stay, and a symbolic link still leads to its file. */
function replaceFile(file: string, text: string): void {
  const real = realpathSync(file);
  const { mode, uid, gid } = statSync(real);
  const made = `${real}.weir-new`;
  rmSync(made, { force: true });
  const descriptor = openSync(made, "wx", mode & 0o777);
  try {
    writeFileSync(descriptor, text);
    if (process.getuid?.() === 0) fchownSync(descriptor, uid, gid);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
  renameSync(made, real);
}

/** One line each, `file:line:column key: message`. */
export function linesOf(file: string, diagnostics: readonly Diagnostic[]): readonly string[] {
  return diagnostics.map((diagnostic) => formatDiagnostic(file, diagnostic));
}

/** What the command line puts over the Controller keys of the file; `secret` where none is in either. The function throws `ConfigError`. */
export function overrideWith(
  flags: ParsedFlags,
  secret: string | null,
  { files, guard }: Pick<Setup, "files" | "guard">,
): (config: Config) => Config {
  const given = {
    externalController: flags.text("ext-ctl"),
    externalControllerTls: flags.text("ext-ctl-tls"),
    externalControllerUnix: flags.text("ext-ctl-unix"),
    externalControllerPipe: flags.text("ext-ctl-pipe"),
    externalUi: flags.text("ext-ui"),
    secret: flags.text("secret") ?? secret,
  };
  const mark = flags.text("ext-ctl-routing-mark");
  const texts = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));
  const marks = mark === null ? {} : { externalControllerRoutingMark: Number(mark) };
  return (config) => {
    const next = { ...config, controller: { ...config.controller, ...texts, ...marks } };
    if (given.externalUi === null) return next;
    files.resolve(given.externalUi);
    const fault = fileFaults(next, next.fileUses, files, guard).find(({ path }) => path[0] === "external-ui");
    if (fault !== undefined) throw new ConfigError(`-ext-ui: ${fault.message}`);
    return next;
  };
}
