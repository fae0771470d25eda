/** The journal for the life of the program; in which file it is, and whether there is one, changes with the configuration. */
import type { TokenGrant } from "#core/access.ts";
import type { AuditDraft, AuditPage, AuditQuery, AuditVerdict } from "#core/audit.ts";
import { ApiError, messageOf } from "#core/errors.ts";
import type { JournalControl, TokenDraft, TokenView } from "#core/journal.ts";
import { withoutFolders } from "#core/places.ts";
import { Retry } from "#lib/retry.ts";
import { OpenJournal, type OpenJournalEnv } from "./open-journal.ts";
import type { JournalSettings } from "./settings.ts";

export class Journal implements JournalControl {
  readonly #env: OpenJournalEnv;
  readonly #retry = new Retry(() => this.#tryAgain());
  #settings: JournalSettings | null = null;
  #open: OpenJournal | null = null;
  /** Why there is none although one is configured. */
  #reason = "";
  /** Files are opened and closed one after the other. */
  #queue: Promise<void> = Promise.resolve();
  #isOver = false;

  constructor(env: OpenJournalEnv) {
    this.#env = env;
  }

  /**
   * Puts settings in force, null: none. Never rejects: a file that cannot be opened is tried again by itself, and until
   * then tokens open nothing.
   */
  adopt(settings: JournalSettings | null): Promise<void> {
    this.#queue = this.#queue.then(() => this.#adopt(settings));
    return this.#queue;
  }

  async #adopt(settings: JournalSettings | null): Promise<void> {
    if (this.#isOver) return;
    this.#settings = settings;
    this.#retry.stop();
    if (settings !== null && this.#open?.path === settings.path) {
      this.#open.audit.settings = settings.audit;
      return;
    }
    const left = this.#open;
    this.#open = null;
    await left?.close();
    if (settings === null) return;
    try {
      await this.#enter(settings);
    } catch (error) {
      this.#env.log.error(
        `svc: ${this.#failed(error)}; it is tried again, and no token opens anything before`,
      );
      this.#retry.start();
    }
  }

  async #enter(settings: JournalSettings): Promise<void> {
    const opened = await OpenJournal.open(settings, this.#env);
    if (this.#isOver) return opened.closeNow();
    this.#open = opened;
  }

  #failed(error: unknown): string {
    return (this.#reason = messageOf(error));
  }

  #tryAgain(): Promise<void> {
    const settings = this.#settings;
    const work = this.#queue.then(async () => {
      if (settings === null || settings !== this.#settings || this.#open !== null) return;
      const before = this.#reason;
      try {
        await this.#enter(settings);
        this.#env.log.warning("svc: the journal is open");
      } catch (error) {
        if (this.#failed(error) !== before) this.#env.log.error(`svc: ${this.#reason}; it is tried again`);
        throw error;
      }
    });
    this.#queue = work.catch(() => {}); // the retry has the error
    return work;
  }

  /** The end of the program: all is written when it returns. Never throws. */
  close(): void {
    this.#isOver = true;
    this.#retry.stop();
    this.#open?.closeNow();
    this.#open = null;
  }

  get secret(): string | null {
    return this.#settings?.secret ?? null;
  }

  tokenOf(token: string): TokenGrant | null {
    return this.#open?.tokens.find(token) ?? null;
  }

  async record(draft: AuditDraft): Promise<void> {
    if (this.#open !== null) return this.#open.audit.record(draft);
    if (this.#settings === null || this.#isOver) return undefined;
    throw new ApiError(500, `done, but the audit log could not be written: ${this.#why()}`);
  }

  tokens(): readonly TokenView[] {
    return this.#demand().tokens.views();
  }

  async createToken(draft: TokenDraft): Promise<{ readonly view: TokenView; readonly token: string }> {
    return this.#demand().tokens.create(draft);
  }

  async revokeToken(id: string): Promise<TokenView> {
    return this.#demand().tokens.revoke(id);
  }

  audit(query: AuditQuery): AuditPage {
    return this.#demand().audit.page(query);
  }

  auditLines(): Iterable<string> {
    return this.#demand().audit.lines();
  }

  verifyAudit(): AuditVerdict {
    return this.#demand().audit.verify();
  }

  #demand(): OpenJournal {
    if (this.#open !== null) return this.#open;
    if (this.#settings === null) throw new ApiError(404, "Resource not found");
    throw new ApiError(500, `the journal cannot be opened at present, it is tried again: ${this.#why()}`);
  }

  #why(): string {
    return withoutFolders(this.#reason, this.#settings?.path ?? "");
  }
}
