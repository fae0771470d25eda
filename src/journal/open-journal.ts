/** One journal, as long as its file is in use. */
import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import { setAside } from "#store/healing.ts";
import type { AsyncStore, OpenedStore, StoredRecords, SupervisedOptions } from "#store/opened-store.ts";
import { DamageError } from "#store/sealed-blob.ts";
import { openSupervisedStore } from "#store/supervised-store.ts";
import { AuditLog } from "./audit-log.ts";
import { AUDIT, HEADS, PARTS, TOKENS } from "./parts.ts";
import type { JournalSettings } from "./settings.ts";
import { TokenBook } from "./token-book.ts";

export interface OpenJournalEnv {
  readonly log: Log;
  /** Unix time. */
  readonly nowMs: () => number;
  /** Absent: in a thread of its own. */
  readonly openStore?: (options: SupervisedOptions) => Promise<OpenedStore>;
}

export class OpenJournal {
  readonly path: string;
  readonly tokens: TokenBook;
  readonly audit: AuditLog;
  readonly #store: AsyncStore;
  readonly #log: Log;

  private constructor({ store, records }: OpenedStore, settings: JournalSettings, env: OpenJournalEnv) {
    this.path = settings.path;
    this.#store = store;
    this.#log = env.log;
    this.tokens = new TokenBook(store, recordsOf(records, TOKENS), env.nowMs);
    this.audit = new AuditLog(store, auditOf(records), settings.audit, env);
  }

  /** Rejects with `StoreError`. What is damaged in both files is kept aside, and the journal begins anew. */
  static async open(settings: JournalSettings, env: OpenJournalEnv): Promise<OpenJournal> {
    const { path } = settings;
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    try {
      return await OpenJournal.#open(settings, env);
    } catch (error) {
      if (!(error instanceof DamageError)) throw error;
      env.log.error(
        `${messageOf(error)}; the journal begins anew without tokens, the files are kept as ${path}.corrupt-…`,
      );
      for (const damaged of [path, `${path}.bak`]) setAside(damaged, env.nowMs());
      const opened = await OpenJournal.#open(settings, env);
      await opened.audit.record({ ...BY_PROGRAM, action: "journal.begin-anew", target: "" });
      return opened;
    }
  }

  static async #open(settings: JournalSettings, env: OpenJournalEnv): Promise<OpenJournal> {
    const { openStore = openSupervisedStore, nowMs, log } = env;
    let journal: OpenJournal | null = null;
    const agree = async (records: OpenedStore["records"]): Promise<void> => {
      if (journal !== null) journal.#adopt(records);
    };
    const opened = await openStore({
      path: settings.path,
      parts: PARTS,
      isMarked: true,
      nowMs,
      log,
      agree,
    });
    try {
      return (journal = new OpenJournal(opened, settings, env));
    } catch (error) {
      await opened.store.close();
      throw error;
    }
  }

  /** The file was opened anew: a commit that was interrupted is in it whole or not at all. */
  #adopt(records: OpenedStore["records"]): void {
    this.tokens.adopt(recordsOf(records, TOKENS));
    this.audit.adopt(auditOf(records));
  }

  /** Never rejects. */
  async close(): Promise<void> {
    this.tokens[Symbol.dispose]();
    await this.#store.close().catch(this.#unclosed);
  }

  /** The same, done when it returns. Never throws. */
  closeNow(): void {
    this.tokens[Symbol.dispose]();
    try {
      this.#store.closeNow();
    } catch (error) {
      this.#unclosed(error);
    }
  }

  readonly #unclosed = (error: unknown): void => this.#log.error(`closing the journal: ${messageOf(error)}`);
}

/** Of what weir does by itself. */
export const BY_PROGRAM = { actor: { kind: "program", name: "weir" }, from: "", request: "" } as const;

function recordsOf(records: OpenedStore["records"], part: string): StoredRecords {
  return records.get(part) ?? [];
}

function auditOf(records: OpenedStore["records"]) {
  return { audit: recordsOf(records, AUDIT), heads: recordsOf(records, HEADS) };
}
