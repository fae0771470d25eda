/** The manager of users. The block's presence turns it on. */
import { block, Fault, filePath, flag, int, list, maybe, name, scalar } from "#core/fields.ts";
import { duration } from "#core/duration.ts";
import { decodeBech32 } from "#lib/bech32.ts";
import { trimEndOf } from "#lib/trim-end.ts";
import { fleet } from "./fleet.ts";
import { webhooks } from "./webhooks.ts";

const SHORTEST_SECRET_BYTES = 32;

const adminSecret = () =>
  scalar({ type: "string", format: "password", minLength: SHORTEST_SECRET_BYTES }, (source) => {
    if (source !== source.trim()) return new Fault("must not begin or end with a blank");
    if (Buffer.byteLength(source) >= SHORTEST_SECRET_BYTES) return source;
    return new Fault(`must have at least ${SHORTEST_SECRET_BYTES} bytes`);
  });

/** https, no user, query or fragment; slashes at the end are removed. */
const publicBaseUrl = () =>
  scalar({ type: "string", format: "uri" }, (source) => {
    if (source === "") return "";
    const url = source === source.trim() ? URL.parse(source) : null;
    const fits =
      url?.protocol === "https:" &&
      /^https:\/\/[^/]/i.test(source) &&
      url.username === "" &&
      url.password === "" &&
      !/[?#@]/.test(source);
    if (fits) return trimEndOf(source, "/");
    return new Fault(`expected an absolute https:// URL without user, query or fragment`);
  });

const AUDIT_KEEP_MS = 365 * 86_400_000;
const AUDIT_ENTRIES = 10_000;
const BACKUP_EVERY_MS = 86_400_000;
const BACKUPS_KEPT = 14;

/** What is kept of the log of changes, whichever is less. */
const audit = () =>
  block({
    keep: duration("1d", "3650d").default(AUDIT_KEEP_MS),
    entries: int(100, 100_000).default(AUDIT_ENTRIES),
  });

const RECIPIENT_BYTES = 32;

/** The public key of age for X25519. */
const recipient = () =>
  scalar({ type: "string", pattern: "^age1[02-9ac-hj-np-z]+$" }, (source) =>
    decodeBech32(source, "age")?.length === RECIPIENT_BYTES
      ? source
      : new Fault("expected an X25519 recipient of age (age1…), as age-keygen prints it"),
  );

/** Backups by the clock. */
const backup = () =>
  block({
    folder: filePath(),
    every: duration("1m", "31d").default(BACKUP_EVERY_MS),
    keep: int(1, 1_000).default(BACKUPS_KEPT),
    "passphrase-file": maybe(filePath()),
    recipients: list(recipient()).default([]),
  });

export const svc = block({
  secret: adminSecret(),
  "public-base-url": publicBaseUrl().default(""),
  "subscription-by-agent": flag().default(false),
  store: filePath().default("svc-state.db"),
  "managed-listeners": list(name()).default([]),
  "former-subscriptions": maybe(filePath()),
  "totp-file": maybe(filePath()),
  audit: audit().default({ keep: AUDIT_KEEP_MS, entries: AUDIT_ENTRIES }),
  backup: maybe(backup()),
  webhooks: webhooks(),
  fleet: maybe(fleet),
});
