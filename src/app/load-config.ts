import { formatDiagnostic } from "#config/report.ts";
import { logSummary } from "#config/summary.ts";
import type { Config } from "#config/config.ts";
import type { ConfigSource } from "#core/control.ts";
import { ConfigError } from "#core/errors.ts";
import type { Host } from "#host/host.ts";
import type { Loader } from "./loader.ts";

/** What makes a configuration of a source. */
export interface ConfigInput {
  readonly host: Pick<Host, "log" | "memoryRelease">;
  readonly loader: Loader;
  /** What the command line puts over the file's Controller keys. */
  readonly override: (config: Config) => Config;
}

/** Reads a configuration and logs its warnings. Throws `ConfigError` with every error of the text. */
export async function loadConfig(
  source: ConfigSource,
  { host, loader, override }: ConfigInput,
): Promise<Config> {
  const { file, result } = await read(source, loader).finally(() => host.memoryRelease.soon());
  if (result.errors !== undefined)
    throw new ConfigError(result.errors.map((error) => formatDiagnostic(file, error)).join("\n"));
  logSummary(host.log, file, result.warnings);
  return override(result.config);
}

function read(source: ConfigSource, loader: Loader): ReturnType<Loader["current"]> {
  if (source.kind === "current") return loader.current();
  return source.kind === "path" ? loader.path(source.path) : loader.text(source.text);
}
