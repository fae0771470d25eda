import { formatDiagnostic } from "#config/report.ts";
import { logSummary } from "#config/summary.ts";
import type { Config } from "#config/config.ts";
import type { ConfigSource } from "#core/control.ts";
import { ConfigError } from "#core/errors.ts";
import type { Host } from "#host/host.ts";
import type { Loaded, Loader } from "./loader.ts";

/** What makes a configuration of a source. */
export interface ConfigInput {
  readonly host: Pick<Host, "log" | "memoryRelease">;
  readonly loader: Loader;
  /** What the command line puts over the file's Controller keys. */
  readonly override: (config: Config) => Config;
}

/** Reads a configuration and logs its warnings. Throws `ConfigError` with every error of the text. */
export async function loadConfig(source: ConfigSource, input: ConfigInput): Promise<Config> {
  const loaded = await read(source, input.loader).finally(() => input.host.memoryRelease.soon());
  return configOf(loaded, input);
}

/** What was read, if it is good. Throws `ConfigError` as `loadConfig` does. */
export function configOf(
  { file, result }: Loaded,
  { host, override }: Pick<ConfigInput, "host" | "override">,
): Config {
  if (result.errors !== undefined)
    throw new ConfigError(result.errors.map((error) => formatDiagnostic(file, error)).join("\n"));
  logSummary(host.log, file, result.warnings);
  return override(result.config);
}

function read(source: ConfigSource, loader: Loader): ReturnType<Loader["current"]> {
  if (source.kind === "current") return loader.current();
  return source.kind === "path" ? loader.path(source.path) : loader.text(source.text);
}
