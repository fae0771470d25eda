/**
 * The audit log of one journal. Entries are chained in the order in which they come; those that come while others are
 * written go into the next commit together. What is not written has not been chained.
 */
import { setTimeout } from "node:timers/promises";
import { messageOf } from "#core/errors.ts";
import type { AuditDraft, AuditEntry, AuditHead, AuditPage, AuditQuery, AuditVerdict } from "#core/audit.ts";
import type { Log } from "#core/log.ts";
import { SettledClock } from "#lib/settled-clock.ts";
import type { Change } from "#store/kv.ts";
import {
  type AsyncStore,
  InterruptedError,
  type StoredRecords,
  UnavailableError,
} from "#store/opened-store.ts";
import { EMPTY_HEAD, entryOf, hashOf, nextLink, verifyLines, type Ends, type Link } from "./audit-chain.ts";
import { AUDIT, HEADS, keyOf } from "./parts.ts";
import type { AuditSettings } from "./settings.ts";

const MOST_OWED = 1024;
const MOST_IN_COMMIT = 128;
/** Of those whose time is over so many go with one commit. */
const MOST_REMOVED = 256;
const HEAD_KEY = "audit";

/** So long a store is waited for that is being opened again. */
const MOST_WAIT_MS = 15_000;
const RETRY_MS = 50;

/** What one commit would make of the log. */
interface Attempt {
  readonly links: readonly Link[];
  /** Of the oldest. */
  readonly gone: number;
  readonly ends: Ends;
  readonly changes: readonly Change[];
}

interface Pending {
  readonly draft: AuditDraft;
  readonly atMs: number;
  readonly resolve: () => void;
}

export interface AuditLogEnv {
  readonly log: Log;
  /** Unix time. */
  readonly nowMs: () => number;
  /** Never set. */
  readonly monotonicMs: () => number;
}

export class AuditLog {
  readonly #store: Pick<AsyncStore, "commit">;
  readonly #env: AuditLogEnv;
  /** By which entries are too old: a date that was wrong for a moment takes none away. */
  readonly #settled: SettledClock;
  readonly #pending: Pending[] = [];
  /** Of changes that were answered while nothing could be written. */
  #owed: readonly Pending[] = [];
  #isWriting = false;
  #ends: Ends = { head: EMPTY_HEAD, anchor: EMPTY_HEAD };
  /** By number, the oldest first. */
  #links: Link[] = [];
  settings: AuditSettings;

  constructor(
    store: Pick<AsyncStore, "commit">,
    records: StoredLog,
    settings: AuditSettings,
    env: AuditLogEnv,
  ) {
    this.#store = store;
    this.settings = settings;
    this.#env = env;
    this.#settled = new SettledClock({ wallMs: env.nowMs, monotonicMs: env.monotonicMs });
    this.adopt(records);
  }

  /** Goes by what the file holds. */
  adopt({ audit, heads }: StoredLog): void {
    this.#links = audit.map(([key, value]) => {
      const line = value.toString();
      return { seq: Number(key), line, hash: hashOf(line) };
    });
    const stored = heads.find(([key]) => key === HEAD_KEY)?.[1];
    this.#ends =
      stored === undefined ? { head: EMPTY_HEAD, anchor: EMPTY_HEAD } : JSON.parse(stored.toString());
  }

  get head(): AuditHead {
    return this.#ends.head;
  }

  /** Settles when it is on the medium; where that takes nothing, when that is known: it goes with a later one then. Never rejects. */
  record(draft: AuditDraft): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#pending.push({ draft, resolve, atMs: Math.trunc(this.#env.nowMs()) });
    void this.#write();
    return promise;
  }

  page({ before, limit, ...query }: AuditQuery): AuditPage {
    const entries: AuditEntry[] = [];
    let next: number | null = null;
    for (let at = this.#indexBefore(before); at >= 0; at--) {
      const link = this.#links[at];
      if (link === undefined) break;
      const entry = entryOf(link.line, link.hash);
      if (query.sinceMs !== null && entry.atMs < query.sinceMs) break;
      if (!isAsked(entry, query)) continue;
      if (entries.length === limit) {
        next = entries.at(-1)?.seq ?? null;
        break;
      }
      entries.push(entry);
    }
    return { entries, next, head: this.head };
  }

  *lines(): Generator<string> {
    for (const { line } of this.#links) yield line; // replaced as a whole, never changed
  }

  verify(): AuditVerdict {
    return verifyLines(
      this.#links.map(({ seq, line }) => [seq, line]),
      this.#ends,
    );
  }

  #indexBefore(seq: number | null): number {
    if (seq === null) return this.#links.length - 1;
    return this.#links.findLastIndex((link) => link.seq < seq);
  }

  async #write(): Promise<void> {
    if (this.#isWriting) return;
    this.#isWriting = true;
    try {
      while (this.#pending.length > 0) await this.#commit(this.#pending.splice(0, MOST_IN_COMMIT));
    } finally {
      this.#isWriting = false;
    }
  }

  /** A store that is being opened again is waited for: the changes are made already. */
  async #commit(batch: readonly Pending[]): Promise<void> {
    const untilMs = performance.now() + MOST_WAIT_MS;
    const unsure: string[] = [];
    const owed = this.#owed;
    this.#owed = [];
    const all = [...owed, ...batch];
    for (;;) {
      const attempt = this.#attempt(all);
      try {
        await this.#store.commit(attempt.changes, { backup: true });
        this.#take(attempt);
        break;
      } catch (error) {
        const isPassing = error instanceof UnavailableError || error instanceof InterruptedError;
        if (!isPassing || performance.now() >= untilMs) return this.#owe(all, error);
        if (error instanceof InterruptedError) unsure.push(attempt.ends.head.hash);
      }
      await setTimeout(RETRY_MS);
      if (unsure.some((hash) => this.#links.some((link) => link.hash === hash))) break; // the file has it
    }
    if (owed.length > 0) this.#env.log.warning(`the audit log has the ${owed.length} entries that it lacked`);
    for (const { resolve } of batch) resolve();
  }

  #attempt(batch: readonly Pending[]): Attempt {
    const links: Link[] = [];
    for (const one of batch) links.push(nextLink(one.draft, links.at(-1) ?? this.head, one.atMs));
    const gone = this.#overdue(links.length, this.#settled.nowMs());
    const { seq, hash } = links.at(-1) ?? this.head;
    const ends: Ends = { head: { seq, hash }, anchor: anchorOf(gone) ?? this.#ends.anchor };
    const changes: readonly Change[] = [
      ...links.map((link) => ({ part: AUDIT, key: keyOf(link.seq), value: Buffer.from(link.line) })),
      ...gone.map((link) => ({ part: AUDIT, key: keyOf(link.seq), value: null })),
      { part: HEADS, key: HEAD_KEY, value: Buffer.from(JSON.stringify(ends)) },
    ];
    return { links, gone: gone.length, ends, changes };
  }

  /** It is on the medium; what was opened anew since then has it already. */
  #take({ links, gone, ends }: Attempt): void {
    if (this.head.seq >= ends.head.seq) return;
    this.#links = [...this.#links.slice(gone), ...links];
    this.#ends = ends;
  }

  /** The changes are made, and answers must not say otherwise. Beyond the bound the oldest entries are lost. */
  #owe(all: readonly Pending[], error: unknown): void {
    const lost = Math.max(0, all.length - MOST_OWED);
    this.#owed = all.slice(lost);
    const text = `the audit log lacks ${this.#owed.length} entries, they go with the next: ${messageOf(error)}`;
    this.#env.log.error(lost === 0 ? text : `${text}; ${lost} are lost`);
    for (const { resolve } of all) resolve();
  }

  /** The oldest, whose time is over or that are too many. */
  #overdue(added: number, nowMs: number): readonly Link[] {
    const { keepMs, mostEntries } = this.settings;
    const surplus = this.#links.length + added - mostEntries;
    const most = this.#links.slice(0, MOST_REMOVED);
    const kept = most.findIndex(
      ({ line, hash }, at) => at >= surplus && entryOf(line, hash).atMs >= nowMs - keepMs,
    );
    return kept < 0 ? most : most.slice(0, kept);
  }
}

export interface StoredLog {
  readonly audit: StoredRecords;
  readonly heads: StoredRecords;
}

function anchorOf(gone: readonly Link[]): AuditHead | null {
  const last = gone.at(-1);
  return last === undefined ? null : { seq: last.seq, hash: last.hash };
}

function isAsked(entry: AuditEntry, { actor, action, about, untilMs }: Omit<AuditQuery, "before" | "limit">) {
  const { user, listener, target } = entry;
  if (untilMs !== null && entry.atMs >= untilMs) return false;
  if (actor !== null && entry.actor.name !== actor && entry.actor.id !== actor) return false;
  if (action !== null && !entry.action.startsWith(action)) return false;
  return about === null || [user?.id, user?.name, listener, target].includes(about);
}
