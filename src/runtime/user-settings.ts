import { hostname } from "node:os";
import type { Config } from "#config/config.ts";
import type { SafeFiles } from "#core/files.ts";
import { isPemText, JOURNAL_SUFFIX } from "#core/files.ts";
import { ConfigError } from "#core/errors.ts";
import type { JournalSettings } from "#journal/settings.ts";
import { readTotpFile } from "#journal/totp.ts";
import { FormerPaths } from "#users/former-paths.ts";
import type { FleetSettings } from "#users/fleet-settings.ts";
import type { ManagedListener, UsersSettings } from "#users/settings.ts";

/** Without traffic control, what `traffic-control.reports.orphan-retention` is by default. */
const REMOVED_HISTORY_MS = 90 * 86_400_000;

/** The `svc` block with the listeners that it names; null: nothing is managed. Throws `ConfigError` for an unsafe path. */
export function userSettings(config: Config, files: SafeFiles): UsersSettings | null {
  const { svc, listeners, trafficControl } = config;
  if (svc === null) return null;
  const named = new Set(svc.managedListeners);
  const managed = listeners.flatMap(({ name, protocol, options, ports }): ManagedListener[] => {
    const { type, users: support } = protocol;
    return named.has(name) && support !== undefined
      ? [{ name, protocol: type, support, options, ports }]
      : [];
  });
  const { secret, publicBaseUrl, subscriptionByAgent, store, formerSubscriptions } = svc;
  const former = formerSubscriptions === null ? null : FormerPaths.open(files.resolve(formerSubscriptions));
  const fleet = fleetSettings(svc, files);
  return {
    secret,
    publicBaseUrl,
    subscriptionByAgent,
    store: files.resolve(store),
    listeners: managed,
    former,
    fleet,
    removedHistoryMs: trafficControl?.reports.orphanRetentionMs ?? REMOVED_HISTORY_MS,
  };
}

/** Tokens and the audit log lie beside the state file; null: there is no `svc` block. Throws `ConfigError` for an unsafe path, or a file of codes that cannot be used. */
export function journalSettings({ svc, controller }: Config, files: SafeFiles): JournalSettings | null {
  if (svc === null) return null;
  const { secret, store, audit, totpFile } = svc;
  if (totpFile !== null && controller.secret === "")
    throw new ConfigError(
      "svc.totp-file: the Controller has no secret and would ask for no code; set secret",
    );
  const totpKey = totpFile === null ? null : readTotpFile(files.resolve(totpFile));
  const path = `${files.resolve(store)}${JOURNAL_SUFFIX}`;
  const hooks = svc.webhooks.map(({ secretFile, ...hook }) => ({
    ...hook,
    secretFile: secretFile === null ? null : files.resolve(secretFile),
  }));
  return {
    secret,
    path,
    audit: { keepMs: audit.keep, mostEntries: audit.entries },
    totpKey,
    webhooks: hooks,
  };
}

/** What is not written is told by this machine and by `public-base-url`. Throws `ConfigError` for an unsafe path. */
export function fleetSettings(svc: NonNullable<Config["svc"]>, files: SafeFiles): FleetSettings | null {
  if (svc.fleet === null) return null;
  const { dsn, dsnFile, ca, node, address, labels, onPartition } = svc.fleet;
  const publicHost = svc.publicBaseUrl === "" ? "" : new URL(svc.publicBaseUrl).hostname;
  return {
    dsn,
    dsnFile: dsnFile === null ? null : files.resolve(dsnFile),
    ca: ca === null || isPemText(ca) ? ca : files.resolve(ca),
    node: node ?? defaultNodeName(),
    address: address ?? publicHost.replace(/^\[(.*)\]$/, "$1"),
    labels,
    onPartition,
  };
}

/** The first part of the host's name, in the characters of a node's name. */
function defaultNodeName(): string {
  return (hostname().split(".", 1)[0] ?? "").replaceAll(/[^A-Za-z0-9_-]/g, "-").slice(0, 63) || "node";
}

/** Null: none are made by the clock. Throws `ConfigError` for an unsafe path. */
export function backupSettings({ svc }: Config, files: SafeFiles) {
  if (svc === null || svc.backup === null) return null;
  const { folder, every: everyMs, keep, passphraseFile, recipients } = svc.backup;
  return {
    folder: files.resolve(folder),
    everyMs,
    keep,
    passphraseFile: passphraseFile === null ? null : files.resolve(passphraseFile),
    recipients,
  };
}
