/** Notes and labels of users, between the names of the admin API and ours. */
import * as z from "zod";
import type { UserView } from "#core/users.ts";

/** What is too long or no text is refused after the revision was looked at. */
export const remarkFields = {
  note: z.string().optional().meta({ description: "Several lines of text for operators; empty: none" }),
  labels: z
    .array(z.string())
    .optional()
    .meta({ description: "All labels of the user, without regard to case; an empty list: none" }),
};

export const labelQuery = z
  .string()
  .optional()
  .meta({ description: "Only users who have this label, without regard to case" });

/** For the document. Both are left out where there is none. */
export const remarkAnswers = {
  note: z.string().min(1).optional(),
  labels: z.array(z.string().min(1)).min(1).optional(),
};

export function remarksJson({ remarks: { note, labels } }: UserView) {
  return { ...(note === "" ? {} : { note }), ...(labels.length === 0 ? {} : { labels: [...labels] }) };
}

/** Those who have the label; without one, all. */
export function labelled<T extends UserView>(users: readonly T[], label: string | undefined): readonly T[] {
  const wanted = label?.trim().toLowerCase() ?? "";
  if (wanted === "") return users;
  return users.filter(({ remarks }) => remarks.labels.some((one) => one.toLowerCase() === wanted));
}
