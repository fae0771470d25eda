import { withBlock } from "#config/block-edit.ts";
import { withEdits } from "#config/edit/index.ts";
import type { TextEdit } from "./config-messages.ts";

/** Throws `ConfigError` where the text cannot be edited so. */
export function withEdit(text: string, edit: TextEdit): string {
  return "edits" in edit ? withEdits(text, edit.edits) : withBlock(text, edit.key, edit.value);
}
