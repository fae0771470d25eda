import type { ParseResult } from "#config/parse.ts";
import type { Config } from "#config/config.ts";
import type { ConfigsPatch } from "#core/control.ts";

/** Where configurations come from. The event loop turns while one is read, whatever its size. `file` is what messages call it. */
export interface Loader {
  /** The source that the program was started with, read anew. All reject with `ConfigError` where nothing can be read. */
  current(): Promise<Loaded>;
  path(path: string): Promise<Loaded>;
  text(text: string): Promise<Loaded>;
  /** The configuration with the settings of a fragment. Throws `ConfigError`. */
  patched(config: Config, fragment: ConfigsPatch): Config;
  /**
   * Writes the source with a new value under a top-level key, if the result is a good configuration. Rejects with
   * `ApiError` 400 where the source is no file, with `ConfigError` and the file as it was.
   */
  rewrite(key: string, value: object): Promise<void>;
  /** Throws `ConfigError` where this is no path for a store of policies, because of what is there or is kept there. */
  refusePolicyStore(config: Config, store: string): void;
  /** Breaks off what is being read: the program ends. */
  stop(): void;
}

export interface Loaded {
  readonly file: string;
  readonly result: ParseResult;
}
