import type { ParseResult } from "#config/parse.ts";
import type { Config } from "#config/config.ts";
import type { Edit } from "#core/config-edit.ts";
import type { ConfigsPatch, ConfigVersion } from "#core/control.ts";

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
  /** The file of the source; null: it is none. */
  readonly file: SourceFile | null;
  /** JSON Schema of a configuration. */
  schema(): Promise<object>;
  /** Throws `ConfigError` where this is no path for a store of policies, because of what is there or is kept there. */
  refusePolicyStore(config: Config, store: string): void;
  /** Breaks off what is being read: the program ends. */
  stop(): void;
}

/** The file as text. Texts are decoded and encoded as the file is. */
export interface SourceFile {
  readonly path: string;
  read(): Promise<{ readonly text: string; readonly hash: string }>;
  /** The text with edits, and what it was found to be. Rejects with `ConfigError` where it cannot be edited so. */
  edited(text: string, edits: readonly Edit[]): Promise<Loaded & { readonly text: string }>;
  /** Text for the file that has this hash; `ApiError` 409 where it has another, 500 where it cannot be written. */
  prepare(text: string, hash: string): Promise<PreparedSource>;
  versions(): Promise<readonly ConfigVersion[]>;
  /** Null: there is none. */
  version(id: number): Promise<string | null>;
}

/** Lies beside the file; gone unless `commit` puts it in the file's place. */
export interface PreparedSource extends AsyncDisposable {
  commit(): Promise<void>;
}

export interface Loaded {
  readonly file: string;
  readonly result: ParseResult;
}
