/** A managed user as the texts of a form, and what a change of them asks of the admin API. */
import type { ManagedInbound, ManagedUser } from "#ui/api/admin-types.ts";
import { amountText, rateLimitText } from "#ui/quantity.ts";
import { WordedError, type PlainKey } from "#ui/words/words.ts";
import { labelsIn, labelsText } from "./labels.ts";
import { amount, rate } from "./policy-fields.ts";

/** A type and no interface: it takes part in merges as JSON. */
export type UserFields = {
  readonly name: string;
  readonly enabled: boolean;
  readonly flow: string;
  /** "": the one that there is, or one that is made up. */
  readonly credential: string;
  readonly quota: string;
  readonly reset: string;
  readonly window: string;
  /** As `datetime-local` writes it. */
  readonly expires: string;
  readonly download: string;
  readonly upload: string;
  readonly connections: string;
  readonly ips: string;
  /** With commas between them. */
  readonly labels: string;
  readonly note: string;
};

export const FIELD_NAMES: Readonly<Record<keyof UserFields, PlainKey>> = {
  name: "common.name",
  enabled: "user.enabled",
  flow: "user.flow",
  credential: "user.credential",
  quota: "user.quota",
  reset: "user.quotaReset",
  window: "user.quotaWindow",
  expires: "user.expires",
  download: "common.download",
  upload: "common.upload",
  connections: "user.connectionLimit",
  ips: "user.addressLimit",
  labels: "user.labels",
  note: "user.note",
};

export const NEW_USER: UserFields = {
  name: "",
  enabled: true,
  flow: "",
  credential: "",
  quota: "",
  reset: "never",
  window: "",
  expires: "",
  download: "",
  upload: "",
  connections: "",
  ips: "",
  labels: "",
  note: "",
};

export function fieldsOfUser(user: ManagedUser): UserFields {
  const { quota } = user;
  return {
    name: user.name,
    enabled: user.enabled,
    flow: user.flow,
    credential: "",
    quota: amountText(quota?.total_bytes ?? 0),
    reset: quota?.window === undefined ? (quota?.reset ?? "never") : "window",
    window: quota?.window ?? "",
    expires: localText(user.expires_at),
    download: rateLimitText(user.download_bps ?? 0),
    upload: rateLimitText(user.upload_bps ?? 0),
    connections: countText(user.connection_limit),
    ips: countText(user.ip_limit),
    labels: labelsText(user.labels),
    note: user.note ?? "",
  };
}

/** The members that differ. Throws a `WordedError` that names the field. */
export function changesOf(
  before: UserFields,
  now: UserFields,
  { credential }: Pick<ManagedInbound, "credential">,
): Readonly<Record<string, unknown>> {
  const differs = (...keys: (keyof UserFields)[]): boolean => keys.some((key) => before[key] !== now[key]);
  return {
    ...(differs("name") ? { name: now.name } : {}),
    ...(differs("enabled") ? { enabled: now.enabled } : {}),
    ...(differs("flow") ? { flow: now.flow } : {}),
    ...(now.credential === "" ? {} : { [credential]: now.credential }),
    ...(differs("quota", "reset", "window") ? { quota: quotaOf(now) } : {}),
    ...(differs("expires") ? { expires_at: now.expires === "" ? 0 : Date.parse(now.expires) } : {}),
    ...(differs("download") ? { download_bps: rate("common.download", now.download) } : {}),
    ...(differs("upload") ? { upload_bps: rate("common.upload", now.upload) } : {}),
    ...(differs("connections") ? { connection_limit: count("user.connectionLimit", now.connections) } : {}),
    ...(differs("ips") ? { ip_limit: count("user.addressLimit", now.ips) } : {}),
    ...(differs("labels") ? { labels: labelsIn(now.labels) } : {}),
    ...(differs("note") ? { note: now.note } : {}),
  };
}

function quotaOf({ quota, reset, window }: UserFields) {
  const total = amount("user.quota", quota);
  return { total_bytes: total, ...(reset === "window" ? { window } : { reset }) };
}

function count(field: PlainKey, text: string): number {
  const value = text.trim() === "" ? 0 : Number(text);
  if (!Number.isSafeInteger(value) || value < 0)
    throw new WordedError((t) => t("form.numberWrong", { field: t(field) }));
  return value;
}

const countText = (value = 0): string => (value === 0 ? "" : String(value));

/** In the time zone of the browser, to the minute. */
function localText(unixMs: number | undefined): string {
  if (unixMs === undefined) return "";
  const minutes = new Date(unixMs).getTimezoneOffset();
  return new Date(unixMs - minutes * 60_000).toISOString().slice(0, 16);
}
