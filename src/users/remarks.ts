/** What operators write down about a user, checked, and as it is kept: nothing of it decides anything. */
import * as z from "zod";
import { ApiError } from "#core/errors.ts";
import type { UserChange, UserRemarks } from "#core/users.ts";

export const NO_REMARKS: UserRemarks = { note: "", labels: [] };

const MAX_NOTE_BYTES = 4096;
const MOST_LABELS = 16;
const MAX_LABEL_BYTES = 64;
/** Everything that would break a line apart; of a note, what is neither a line break nor a tab. */
const CONTROL = /\p{Cc}/u;
const CONTROL_IN_NOTE = /[^\P{Cc}\n\t]/u;

/** In the state file, in exported documents and in a fleet's database, by the names of the API. Absent: none. */
export const storedRemarks = z.object({
  note: z.string().optional(),
  labels: z.array(z.string()).optional(),
});
export type StoredRemarks = z.output<typeof storedRemarks>;

/** Empty for a user about whom nothing was written down. */
export function remarksJson({ note, labels }: UserRemarks): { note?: string; labels?: string[] } {
  return { ...(note === "" ? {} : { note }), ...(labels.length === 0 ? {} : { labels: [...labels] }) };
}

export function remarksOf({ note = "", labels = [] }: StoredRemarks): UserRemarks {
  return note === "" && labels.length === 0 ? NO_REMARKS : { note, labels };
}

/** What the change does not name stays. Throws `ApiError` 400. */
export function changedRemarks(
  before: UserRemarks,
  { note, labels }: Pick<UserChange, "note" | "labels">,
): UserRemarks {
  return remarksOf({
    note: note === undefined ? before.note : checkedNote(note),
    labels: labels === undefined ? [...before.labels] : checkedLabels(labels),
  });
}

function checkedNote(text: string): string {
  const note = text.replaceAll("\r\n", "\n").trim();
  if (!note.isWellFormed() || CONTROL_IN_NOTE.test(note))
    throw new ApiError(400, "note: must be text; line breaks and tabs are the only control characters");
  if (Buffer.byteLength(note) > MAX_NOTE_BYTES)
    throw new ApiError(400, `note: must have at most ${MAX_NOTE_BYTES} bytes`);
  return note;
}

/** Two that differ in case alone are one: the first spelling stays. */
function checkedLabels(texts: readonly string[]): string[] {
  const byKey = new Map<string, string>();
  for (const text of texts) {
    const label = checkedLabel(text);
    const key = label.toLowerCase();
    if (!byKey.has(key)) byKey.set(key, label);
  }
  if (byKey.size > MOST_LABELS) throw new ApiError(400, `labels: must be at most ${MOST_LABELS}`);
  return [...byKey.values()];
}

function checkedLabel(text: string): string {
  const label = text.trim();
  if (label === "") throw new ApiError(400, "labels: must not be blank");
  if (!label.isWellFormed() || CONTROL.test(label) || label.includes(","))
    throw new ApiError(400, "labels: must be text of one line without a comma");
  if (Buffer.byteLength(label) > MAX_LABEL_BYTES)
    throw new ApiError(400, `labels: each must have at most ${MAX_LABEL_BYTES} bytes`);
  return label;
}
