import type { ManagedUser } from "#ui/api/admin-types.ts";

/** A user as the admin API shows it, without limits. */
export const managedUser = (name: string, more: Partial<ManagedUser> = {}): ManagedUser => ({
  id: `id of ${name}`,
  inbound: "edge",
  type: "vless",
  name,
  flow: "",
  enabled: true,
  upload_bytes: 0,
  download_bytes: 0,
  active_connections: 0,
  created_at: 1,
  revision: 1,
  ...more,
});
