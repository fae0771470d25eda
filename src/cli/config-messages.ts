/** What the main thread and the thread that reads a configuration say to each other. */
import type { PackedResult } from "#documents/packed-config.ts";
import type { ParseSettings } from "./parse-env.ts";

/** A text, or the file that holds it. */
export type ConfigDocument = { readonly text: string } | { readonly file: string };

/** A new value under a top-level key of the text. */
export interface BlockEdit {
  readonly key: string;
  readonly value: object;
}

export interface ConfigRequest {
  readonly settings: ParseSettings;
  readonly document: ConfigDocument;
  /** What is read is the text with this edit. */
  readonly edit: BlockEdit | null;
}

export interface ConfigReply {
  readonly result: PackedResult;
  /** With the edit; null: there was none. */
  readonly edited: Uint8Array<ArrayBuffer> | null;
}
