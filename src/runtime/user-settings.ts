import type { Config } from "#config/config.ts";
import type { SafeFiles } from "#core/files.ts";
import type { ManagedListener, UsersSettings } from "#users/settings.ts";

/** The `svc` block with the listeners that it names; null: nothing is managed. Throws `ConfigError` for an unsafe path. */
export function userSettings({ svc, listeners }: Config, files: SafeFiles): UsersSettings | null {
  if (svc === null) return null;
  const named = new Set(svc.managedListeners);
  const managed = listeners.flatMap(({ name, protocol, options, ports }): ManagedListener[] => {
    const { type, users: support } = protocol;
    return named.has(name) && support !== undefined
      ? [{ name, protocol: type, support, options, ports }]
      : [];
  });
  const { secret, publicBaseUrl, store } = svc;
  return { secret, publicBaseUrl, store: files.resolve(store), listeners: managed };
}
