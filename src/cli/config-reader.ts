/** Configurations of a running program: large ones are read in a thread, so that sessions go on meanwhile. */
import { statSync } from "node:fs";
import { parseConfig, type ParseEnv, type ParseResult } from "#config/parse.ts";
import { ABORTED, ConfigError } from "#core/errors.ts";
import { Slices } from "#core/slices.ts";
import { unpackResult } from "#documents/packed-config.ts";
import { ReadingThread, type ThreadBounds } from "#documents/thread.ts";
import type { ConfigDocument, ConfigReply, ConfigRequest, TextEdit } from "./config-messages.ts";
import type { ParseSettings } from "./parse-env.ts";
import { readConfigFile } from "./source.ts";
import { withEdit } from "./text-edit.ts";

/**
 * Smaller texts are read at once, in 40 ms whatever they say (8 KiB of faults took 80): a thread takes some hundred to start.
 */
const SMALL_BYTES = 4 * 1024;

/** Three hundred thousand rules take some six seconds and half a gigabyte where nothing else runs. */
const BOUNDS: ThreadBounds = { mostMs: 300_000, mostHeapMiB: 2048 };

const PROGRAM = { from: import.meta.url, source: "config-thread.ts", built: "config-thread" };

export interface ConfigReaderBounds extends ThreadBounds {
  readonly smallBytes: number;
}

/** The caller asks for one after the other. */
export class ConfigReader {
  readonly #settings: ParseSettings;
  readonly #env: ParseEnv;
  readonly #bounds: ConfigReaderBounds;
  readonly #thread: ReadingThread;
  readonly #slices = new Slices();
  readonly #end = new AbortController();

  /** `settings` and `env` say the same. */
  constructor(
    settings: ParseSettings,
    env: ParseEnv,
    bounds: ConfigReaderBounds = { ...BOUNDS, smallBytes: SMALL_BYTES },
  ) {
    this.#settings = settings;
    this.#env = env;
    this.#bounds = bounds;
    this.#thread = new ReadingThread(PROGRAM, { what: "reading the configuration", bounds });
  }

  /** Throws `ConfigError` where there is nothing to read, or where reading it exceeds a bound. */
  async read(document: ConfigDocument): Promise<ParseResult> {
    if (!this.#isSmall(document)) return (await this.#readInThread(document, null)).result;
    return parseConfig(textOf(document), this.#env);
  }

  /** The text with an edit, and what it was found to be; throws as `read`, and where it cannot be edited. */
  async readEdited(
    document: ConfigDocument,
    edit: TextEdit,
  ): Promise<{ readonly result: ParseResult; readonly text: Uint8Array }> {
    if (!this.#isSmall(document)) {
      const { result, edited } = await this.#readInThread(document, edit);
      if (edited === null) throw new Error("the thread has edited nothing");
      return { result, text: edited };
    }
    const text = withEdit(textOf(document), edit);
    return { result: parseConfig(text, this.#env), text: Buffer.from(text) };
  }

  /** Breaks off what is being read: the program ends. */
  stop(): void {
    this.#end.abort(ABORTED);
    this.#thread.end();
  }

  /** Throws where it is no regular file: a pipe could keep a reader waiting for ever. */
  #isSmall(document: ConfigDocument): boolean {
    if ("text" in document) return document.text.length <= this.#bounds.smallBytes;
    const stat = statSync(document.file, { throwIfNoEntry: false });
    if (stat === undefined || stat.isDirectory()) return true; // what is said of it is said where it is read
    if (stat.isFile()) return stat.size <= this.#bounds.smallBytes;
    throw new ConfigError(`cannot read the configuration: ${document.file} is no regular file`);
  }

  async #readInThread(
    document: ConfigDocument,
    edit: TextEdit | null,
  ): Promise<{ readonly result: ParseResult; readonly edited: Uint8Array | null }> {
    const request: ConfigRequest = { settings: this.#settings, document, edit };
    const { signal } = this.#end;
    const { result, edited } = await this.#thread.ask<ConfigReply>(request, { signal });
    return { result: await unpackResult(result, this.#env.registries, this.#slices), edited };
  }
}

function textOf(document: ConfigDocument): string {
  return "text" in document ? document.text : readConfigFile(document.file);
}
