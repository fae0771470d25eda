/** Labels of users: as text of a form, and over a list. */
import type { ManagedUser } from "#ui/api/admin-types.ts";

export function labelsText(labels: readonly string[] = []): string {
  return labels.join(", ");
}

/** What stands between commas; empty parts are none. The program judges the rest. */
export function labelsIn(text: string): readonly string[] {
  return text
    .split(/[,،，]/)
    .map((part) => part.trim())
    .filter((part) => part !== "");
}

const keyOf = (label: string): string => label.toLowerCase();

/** All labels of the users by name, each with how many have it; those that differ in case alone are one. */
export function labelCounts(users: readonly ManagedUser[]): readonly (readonly [string, number])[] {
  const counts = new Map<string, [label: string, count: number]>();
  for (const { labels = [] } of users)
    for (const label of labels) {
      const known = counts.get(keyOf(label));
      if (known === undefined) counts.set(keyOf(label), [label, 1]);
      else known[1]++;
    }
  return [...counts.values()].toSorted(([a], [b]) => a.localeCompare(b));
}

export function hasLabel({ labels = [] }: ManagedUser, label: string): boolean {
  return labels.some((one) => keyOf(one) === keyOf(label));
}

/** The user's labels with one more, or without it. */
export function withLabel(user: ManagedUser, label: string, isOn: boolean): readonly string[] {
  const { labels = [] } = user;
  if (isOn) return hasLabel(user, label) ? labels : [...labels, label.trim()];
  return labels.filter((one) => keyOf(one) !== keyOf(label.trim()));
}
