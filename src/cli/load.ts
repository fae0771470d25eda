/** From flags to a configuration: what `run`, `-t` and `explain` have in common. */
import { fileFaults } from "#config/file-uses.ts";
import { formatDiagnostic, type Diagnostic } from "#config/report.ts";
import { patchConfig } from "#config/patch.ts";
import { parseConfig } from "#config/parse.ts";
import { safePathEnvironment } from "#config/safe-path.ts";
import type { Config } from "#config/config.ts";
import { ApiError, ConfigError } from "#core/errors.ts";
import type { FileGuard, SafeFiles } from "#core/files.ts";
import type { Log } from "#core/log.ts";
import type { Loaded, Loader } from "#app/loader.ts";
import type { ConfigDocument } from "./config-messages.ts";
import { ConfigReader } from "./config-reader.ts";
import type { ParsedFlags } from "./flags.ts";
import { openParseEnv, REGISTRIES, type ParseSettings } from "./parse-env.ts";
import { openSourceFile } from "./source-file.ts";
import { homeOf, sourceOf, type Source } from "./source.ts";

export interface Setup {
  readonly home: string;
  readonly source: Source;
  readonly files: SafeFiles;
  readonly guard: FileGuard;
  readonly loader: Loader;
  /** Reads the source at once: there is nothing yet that waiting for it could hold up. Throws `ConfigError`. */
  first(): Loaded;
}

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
  const source = sourceOf(flags, home, writes);
  const settings: ParseSettings = {
    home,
    ...safePathEnvironment(env),
    geodataMode: flags.on("m"),
    source: source.file,
  };
  const parseEnv = openParseEnv(settings, log);
  const { files, guard } = parseEnv;
  const reader = new ConfigReader(settings, parseEnv);
  const named = source.file ?? "configuration";
  const document = (): ConfigDocument =>
    source.file === null ? { text: source.read() } : { file: source.file };
  const load = async (file: string, from: ConfigDocument): Promise<Loaded> => ({
    file,
    result: await reader.read(from),
  });
  const file = source.file === null ? null : openSourceFile(source.file, reader);
  const loader: Loader = {
    current: () => load(named, document()),
    path: async (path) => load(path, { file: files.resolve(path) }),
    text: (text) => load("payload", { text }),
    patched: (config, fragment) => patchConfig(config, fragment, parseEnv),
    async rewrite(key, value) {
      if (file === null) throw new ApiError(400, "the configuration is no file that could be written");
      const { text, hash } = await file.read();
      const edited = await reader.readEdited({ text }, { key, value });
      if (edited.result.errors !== undefined)
        throw new ConfigError(linesOf(file.path, edited.result.errors).join("\n"));
      await using prepared = await file.prepare(new TextDecoder().decode(edited.text), hash);
      await prepared.commit();
    },
    file,
    schema: async () => (await import("#config/schema.ts")).configSchema(REGISTRIES),
    refusePolicyStore(config, store) {
      const faults = fileFaults({ ...config, trafficControl: { store } }, config.fileUses, files, guard);
      const fault = faults.find(({ path }) => path[0] === "traffic-control");
      if (fault !== undefined) throw new ConfigError(fault.message.replaceAll(files.resolve(store), store));
    },
    stop: () => reader.stop(),
  };
  const first = (): Loaded => ({ file: named, result: parseConfig(source.read(), parseEnv) });
  return { home, source, files, guard, loader, first };
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
