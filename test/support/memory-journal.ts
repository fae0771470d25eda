/** A journal in memory, with the real tokens and the real audit log: for tests of the API alone. */
import type { AuditDraft, AuditQuery } from "#core/audit.ts";
import type { JournalControl, TokenDraft } from "#core/journal.ts";
import type { WebhooksControl } from "#core/events.ts";
import { SILENT } from "#core/log.ts";
import { AuditLog } from "#journal/audit-log.ts";
import { EventLog } from "#journal/event-log.ts";
import { Webhooks } from "#journal/webhooks.ts";
import { TokenBook } from "#journal/token-book.ts";
import { ADMIN_SECRET } from "./memory-users.ts";
import { Codes } from "#journal/code-gate.ts";
import { Sessions } from "#journal/sessions.ts";

export const WEBHOOK_SECRET = `whsec_${Buffer.alloc(24, 7).toString("base64")}`;
const STORE = { commit: async () => {} };

export class MemoryJournal implements JournalControl {
  readonly sessions = new Sessions();
  readonly codes = new Codes({ nowMs: () => this.nowMs, keep: async () => {}, warn: () => {} });
  readonly secret: string | null = ADMIN_SECRET;
  nowMs = 1_785_312_000_000;
  readonly #now = (): number => this.nowMs;
  readonly #tokens = new TokenBook(STORE, [], this.#now);
  readonly #audit = new AuditLog(
    STORE,
    { audit: [], heads: [] },
    { keepMs: 1e12, mostEntries: 10_000 },
    { log: SILENT, nowMs: this.#now, monotonicMs: this.#now },
  );

  readonly #webhooks = new Webhooks(STORE, {
    log: SILENT,
    nowMs: this.#now,
    monotonicMs: () => performance.now(),
    send: () => async () => ({ status: 204, retryAfterMs: null }),
    instance: "memory",
    event: (seq) => this.events.event(seq),
  });
  readonly events = new EventLog(STORE, { events: [], marks: [], heads: [] }, this.#webhooks, {
    log: SILENT,
    nowMs: this.#now,
  });
  readonly webhooks: WebhooksControl = {
    views: () => this.#webhooks.views(),
    deadLetters: (name) => this.#webhooks.deadLetters(name),
    resend: (name) => this.#webhooks.resend(name),
    test: async (name) => this.#webhooks.demand(name),
  };

  constructor() {
    this.#webhooks.adopt([
      {
        name: "Proxy",
        url: "https://hook.example/x",
        secret: WEBHOOK_SECRET,
        secretFile: null,
        events: [],
        allowPrivate: false,
      },
    ]);
  }

  tokenOf = (token: string) => this.#tokens.find(token);
  record = (draft: AuditDraft) => this.#audit.record(draft);
  tokens = () => this.#tokens.views();
  createToken = (draft: TokenDraft) => this.#tokens.create(draft);
  revokeToken = (id: string) => this.#tokens.revoke(id);
  audit = (query: AuditQuery) => this.#audit.page(query);
  auditLines = () => this.#audit.lines();
  verifyAudit = () => this.#audit.verify();
}
