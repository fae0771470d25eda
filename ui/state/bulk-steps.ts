/** What is asked for of many users at once, as one request each. */
import type { ManagedUser } from "#ui/api/admin-types.ts";
import type { Method } from "#ui/api/request.ts";
import { withLabel } from "./labels.ts";

/** One request, without the revision. */
export interface BulkStep {
  readonly listener: string;
  /** Of the user, for messages. */
  readonly name: string;
  readonly method: Method;
  readonly path: string;
  readonly body?: Readonly<Record<string, unknown>>;
}

export const BULK_ACTIONS = ["enable", "disable", "extend", "label", "unlabel", "reset", "delete"] as const;
export type BulkAction = (typeof BULK_ACTIONS)[number];

const DAY_MS = 86_400_000;

/** What an action needs besides. */
export interface BulkWith {
  /** By how much an end is put off; a user without one has it from `nowMs` on. */
  readonly days?: number;
  readonly nowMs?: number;
  /** That is given or taken. */
  readonly label?: string;
}

export function stepOf(
  user: ManagedUser,
  action: BulkAction,
  { days = 0, nowMs = 0, label = "" }: BulkWith = {},
): BulkStep {
  const { id, name, inbound: listener, expires_at: end = 0 } = user;
  const path = `users/${encodeURIComponent(id)}`;
  const common = { listener, name, path };
  if (action === "delete") return { ...common, method: "DELETE" };
  if (action === "reset") return { ...common, method: "POST", path: `${path}/reset-traffic` };
  if (action === "extend")
    return { ...common, method: "PUT", body: { expires_at: Math.max(end, nowMs) + days * DAY_MS } };
  if (action === "label" || action === "unlabel")
    return { ...common, method: "PUT", body: { labels: withLabel(user, label, action === "label") } };
  return { ...common, method: "PUT", body: { enabled: action === "enable" } };
}

/** `user-{n}` with numbers from `first` on, all as long as the last one; without `{n}` they stand at the end. */
export function namesOf(pattern: string, first: number, count: number): readonly string[] {
  const digits = String(first + count - 1).length;
  const whole = pattern.includes("{n}") ? pattern : `${pattern}{n}`;
  return Array.from({ length: count }, (_, at) =>
    whole.trim().replaceAll("{n}", String(first + at).padStart(digits, "0")),
  );
}
