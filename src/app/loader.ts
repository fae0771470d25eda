import type { ParseResult } from "#config/parse.ts";
import type { Config } from "#config/config.ts";
import type { ConfigsPatch } from "#core/control.ts";

/** Where configurations come from. `file` is what messages call it. */
export interface Loader {
  /** The source that the program was started with, read anew. */
  current(): Loaded;
  path(path: string): Loaded;
  text(text: string): Loaded;
  /** The configuration with the settings of a fragment. Throws `ConfigError`. */
  patched(config: Config, fragment: ConfigsPatch): Config;
  /**
   * Writes the text of the source anew, if the result is a good configuration. Throws `ApiError` 400 where the source is
   * no file, `ConfigError` with the file as it was.
   */
  rewrite(edit: (text: string) => string): void;
  /** Throws `ConfigError` where this is no path for a store of policies, because of what is there or is kept there. */
  refusePolicyStore(config: Config, store: string): void;
}

export interface Loaded {
  readonly file: string;
  readonly result: ParseResult;
}
