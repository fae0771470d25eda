/** What the audit log says of a change of a user: never a credential, never a link. */
import type { AuditNote } from "#api/route.ts";
import type { JsonValue } from "#core/control.ts";
import type { UserDetailView } from "#core/users.ts";
import { userJson } from "./shapes.ts";

/** What changes by itself or with every change. */
const RESTLESS = new Set([
  "upload_bytes",
  "download_bytes",
  "active_connections",
  "revision",
  "applied_revision",
  "updated_at",
  "status",
]);

/** `before` null: created; `after` null: deleted. */
export function noteOfUser(
  action: string,
  before: UserDetailView | null,
  after: UserDetailView | null,
): AuditNote {
  const user = after ?? before;
  if (user === null) return { action };
  const [was, is] = [settingsOf(before), settingsOf(after)];
  const both = before !== null && after !== null;
  const changed = [...new Set([...Object.keys(was), ...Object.keys(is)])].filter(
    (key) => !both || JSON.stringify(was[key]) !== JSON.stringify(is[key]),
  );
  const isRenewed = both && before.credential !== after.credential;
  return {
    action,
    target: user.id,
    listener: user.inbound,
    user: { id: user.id, name: user.name },
    ...(before === null ? {} : { before: picked(was, changed) }),
    ...(after === null
      ? {}
      : { after: { ...picked(is, changed), ...(isRenewed ? { [after.credentialKind]: "changed" } : {}) } }),
  };
}

export function noteOfReset(before: UserDetailView | null, after: UserDetailView): AuditNote {
  return {
    ...noteOfUser("user.reset-traffic", before, after),
    ...(before === null
      ? {}
      : { before: { upload_bytes: before.uploadBytes, download_bytes: before.downloadBytes } }),
    after: { upload_bytes: after.uploadBytes, download_bytes: after.downloadBytes },
  };
}

type Settings = Readonly<Record<string, JsonValue | undefined>>;

/** Of limits what they allow, without what was used of them. */
function settingsOf(view: UserDetailView | null): Settings {
  if (view === null) return {};
  const { quota, ...rest } = userJson(view);
  const kept = Object.entries(rest).filter(([key]) => !RESTLESS.has(key));
  if (quota === undefined) return Object.fromEntries(kept);
  const { total_bytes: totalBytes, reset, window = null } = quota;
  return { ...Object.fromEntries(kept), quota: { total_bytes: totalBytes, per: reset ?? window } };
}

function picked(settings: Settings, keys: readonly string[]): Record<string, JsonValue> {
  const found: Record<string, JsonValue> = {};
  for (const key of keys) {
    const value = settings[key];
    if (value !== undefined) found[key] = value;
  }
  return found;
}
