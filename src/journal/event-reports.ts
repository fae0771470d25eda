/** From what the parts of weir report to events: what is said once, what is said when it changes, what is left out. */
import { createHash } from "node:crypto";
import type { EventDraft, EventSinks, EventUser } from "#core/events.ts";
import { withoutFolders } from "#core/places.ts";

/** Where events go: to the log of the journal that is open, or into its queue. */
export interface Emitter {
  /** Runs it now, or once a journal is open; where none is configured, never. */
  when(report: () => void): void;
  readonly nowMs: () => number;
  /** Null: nothing was reported yet, or no journal is open. */
  markOf(key: string): string | null;
  emit(draft: EventDraft, mark?: readonly [key: string, value: string | null] | null): void;
}

/** Addresses of a user that are remembered, the newest last. */
const MOST_ADDRESSES = 64;
/** A limit that is met again and again is reported so often. */
const LIMIT_STEP_MS = 3_600_000;
const MOST_TEXT_CHARACTERS = 500;

export function openReports(to: Emitter): EventSinks {
  /** Reported when it differs from what was reported last; `quiet`: the state that the first report is not worth. */
  const turn = (key: string, state: string, quiet: string | null, draft: EventDraft): void =>
    to.when(() => {
      const before = to.markOf(key) ?? quiet;
      if (before !== state) to.emit(draft, [key, state]);
    });
  const say = (draft: EventDraft, mark: readonly [string, string | null] | null = null): void =>
    to.when(() => to.emit(draft, mark));
  const about = (type: EventDraft["type"], user: EventUser, more: EventDraft["data"] = {}): EventDraft => ({
    type,
    subject: `user/${user.id}`,
    data: { user: { id: user.id, name: user.name, listener: user.listener }, ...more },
  });
  const connected = (user: EventUser, ip: string): void => {
    const key = `addresses/${user.id}`;
    const known = to.markOf(key)?.split(" ") ?? [];
    const digest = digestOf(user.id, ip);
    if (known.includes(digest)) return;
    const mark = [key, [...known, digest].slice(-MOST_ADDRESSES).join(" ")] as const;
    to.emit(about(known.length === 0 ? "user.first-connection" : "user.new-address", user, { ip }), mark);
  };
  const refused = (user: EventUser, limit: string): void => {
    const key = `refused/${limit}/${user.id}`;
    const nowMs = Math.trunc(to.nowMs());
    const lastMs = Number(to.markOf(key) ?? 0);
    if (nowMs >= lastMs && nowMs - lastMs < LIMIT_STEP_MS) return;
    to.emit(about("user.limit-reached", user, { limit }), [key, String(nowMs)]);
  };
  return {
    created: (user) => say(about("user.created", user)),
    changed: (user, changed) => say(about("user.changed", user, { changed })),
    enabled: (user, isEnabled) => say(about(isEnabled ? "user.enabled" : "user.disabled", user)),
    deleted(user) {
      say(about("user.deleted", user), [`addresses/${user.id}`, null]);
    },
    limited(user, by) {
      const type = by === null ? "user.back" : by === "expired" ? "user.expired" : "user.over-quota";
      turn(`limit/${user.id}`, by ?? "within", "within", about(type, user));
    },
    connected: (user, ip) => to.when(() => connected(user, ip)),
    refused: (user, limit) => to.when(() => refused(user, limit)),
    listener(name, reason) {
      const data = { listener: name, ...(reason === null ? {} : { reason: bounded(reason) }) };
      const type = reason === null ? "listener.up" : "listener.down";
      turn(`listener/${name}`, reason === null ? "up" : "down", null, {
        type,
        subject: `listener/${name}`,
        data,
      });
    },
    node(name, isAlive) {
      const type = isAlive ? "node.back" : "node.dead";
      turn(`node/${name}`, isAlive ? "alive" : "dead", "alive", {
        type,
        subject: `node/${name}`,
        data: { node: name },
      });
    },
    provider(title, reason) {
      const data = { provider: title, ...(reason === null ? {} : { reason: bounded(reason) }) };
      const type = reason === null ? "provider.refreshed" : "provider.failed";
      say({ type, subject: `provider/${title}`, data });
    },
    healed(file) {
      say({ type: "store.healed", subject: "stores", data: { file: withoutFolders(file, file) } });
    },
    kernelDirect(reason) {
      const type = reason === null ? "kernel-direct.back" : "kernel-direct.degraded";
      const data = reason === null ? {} : { reason: bounded(reason) };
      turn("kernel-direct", reason === null ? "well" : "degraded", "well", {
        type,
        subject: "kernel-direct",
        data,
      });
    },
    config(source, refusal) {
      const type = refusal === null ? "config.applied" : "config.refused";
      const data = { source, ...(refusal === null ? {} : { reason: bounded(refusal) }) };
      say({ type, subject: "configuration", data });
    },
    restored(backupCreatedAtMs, reason) {
      const type = reason === null ? "program.restored" : "program.restore-failed";
      const data = {
        backup_created_at: new Date(backupCreatedAtMs).toISOString(),
        ...(reason === null ? {} : { reason: bounded(reason) }),
      };
      say({ type, subject: "program", data });
    },
    updateFailed(reason) {
      say({ type: "program.update-failed", subject: "program", data: { reason: bounded(reason) } });
    },
    certificate(owner, endsAtMs) {
      const key = `certificate/${owner}`;
      const data = { owner, ends_at: new Date(endsAtMs).toISOString() };
      turn(key, String(endsAtMs), null, { type: "certificate.expiring", subject: key, data });
    },
  };
}

/** Enough to know an address again, and not to read it from the file. A network of IPv6 counts as one address. */
function digestOf(id: string, ip: string): string {
  const network = ip.includes(":") ? networkOf(ip) : ip;
  return createHash("sha256").update(`${id} ${network}`).digest("base64url").slice(0, 10);
}

/** The first 64 bits, which a user keeps while privacy addresses change. */
function networkOf(ip: string): string {
  const [head = "", tail = ""] = ip.split("::");
  const groups = (part: string) => part.split(":").filter((group) => group !== "");
  const gap = ip.includes("::") ? 8 - groups(head).length - groups(tail).length : 0;
  return [...groups(head), ...Array<string>(Math.max(0, gap)).fill("0"), ...groups(tail)]
    .slice(0, 4)
    .join(":");
}

function bounded(text: string): string {
  return withoutFolders(text, "").slice(0, MOST_TEXT_CHARACTERS);
}
