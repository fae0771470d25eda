/** What the main thread and the thread that reads a configuration say to each other. */
import type { Edit } from "#core/config-edit.ts";
import type { PackedResult } from "#documents/packed-config.ts";
import type { ParseSettings } from "./parse-env.ts";

/** A text, or the file that holds it. */
export type ConfigDocument = { readonly text: string } | { readonly file: string };

/** A new value under a top-level key of the text. */
export interface BlockEdit {
  readonly key: string;
  readonly value: object;
}

/** What is done to a text before it is read. */
export type TextEdit = BlockEdit | { readonly edits: readonly Edit[] };

export interface ConfigRequest {
  readonly settings: ParseSettings;
  readonly document: ConfigDocument;
  /** What is read is the text with this edit. */
  readonly edit: TextEdit | null;
}

export interface ConfigReply {
  readonly result: PackedResult;
  /** With the edit; null: there was none. */
  readonly edited: Uint8Array<ArrayBuffer> | null;
}
