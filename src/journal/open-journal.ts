/** One journal, as long as its file is in use. */
import { mkdirSync } from "node:fs";
import { randomBytes } from "node:crypto";
import { dirname } from "node:path";
import { messageOf } from "#core/errors.ts";
import type { AuditDraft } from "#core/audit.ts";
import type { StoreEvents } from "#core/events.ts";
import type { Log } from "#core/log.ts";
import { setAside } from "#store/healing.ts";
import type { AsyncStore, OpenedStore, StoredRecords, SupervisedOptions } from "#store/opened-store.ts";
import { DamageError } from "#store/sealed-blob.ts";
import { openSupervisedStore } from "#store/supervised-store.ts";
import { AuditLog } from "./audit-log.ts";
import type { UsedCode } from "./code-gate.ts";
import { EventLog } from "./event-log.ts";
import { AUDIT, DELIVERIES, EVENTS, HEADS, MARKS, PARTS, TOKENS } from "./parts.ts";
import type { JournalSettings } from "./settings.ts";
import { TokenBook } from "./token-book.ts";
import type { SendWebhook } from "./webhook-settings.ts";
import { Webhooks } from "./webhooks.ts";

export interface OpenJournalEnv {
  readonly log: Log;
  /** Is told where the journal itself was healed. */
  readonly events?: StoreEvents;
  /** Delivers to webhooks. Absent: nothing is delivered. */
  readonly send?: () => SendWebhook;
  /** Unix time. */
  readonly nowMs: () => number;
  /** Never set. */
  readonly monotonicMs: () => number;
  /** Absent: in a thread of its own. */
  readonly openStore?: (options: SupervisedOptions) => Promise<OpenedStore>;
}

export class OpenJournal {
  readonly path: string;
  readonly tokens: TokenBook;
  readonly audit: AuditLog;
  readonly events: EventLog;
  readonly webhooks: Webhooks;
  /** The last one-time code that was taken; null: none was. */
  readonly usedCode: UsedCode | null;
  readonly #store: AsyncStore;
  readonly #log: Log;

  private constructor({ store, records }: OpenedStore, settings: JournalSettings, env: OpenJournalEnv) {
    this.path = settings.path;
    this.#store = store;
    this.#log = env.log;
    this.tokens = new TokenBook(store, recordsOf(records, TOKENS), env.nowMs);
    this.audit = new AuditLog(store, auditOf(records), settings.audit, env);
    const heads = recordsOf(records, HEADS);
    const used = heads.find(([key]) => key === CODE_KEY)?.[1];
    this.usedCode = used === undefined ? null : (JSON.parse(used.toString()) as UsedCode);
    const { send = () => UNSENT, log, nowMs, monotonicMs } = env;
    const event = (seq: number) => this.events.event(seq);
    const instance = this.#instanceOf(heads);
    this.webhooks = new Webhooks(store, { log, nowMs, monotonicMs, send, instance, event });
    const stored = { heads, events: recordsOf(records, EVENTS), marks: recordsOf(records, MARKS) };
    this.events = new EventLog(store, stored, this.webhooks, env);
    this.webhooks.adopt(settings.webhooks, recordsOf(records, DELIVERIES));
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
    const { openStore = openSupervisedStore, nowMs, log, events } = env;
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
      ...(events === undefined ? {} : { events }),
    });
    try {
      return (journal = new OpenJournal(opened, settings, env));
    } catch (error) {
      await opened.store.close();
      throw error;
    }
  }

  /** Made with the file. Where it cannot be written now, the next start makes another one. */
  #instanceOf(heads: StoredRecords): string {
    const stored = heads.find(([key]) => key === INSTANCE_KEY)?.[1];
    if (stored !== undefined) return stored.toString();
    const instance = randomBytes(6).toString("hex");
    const change = { part: HEADS, key: INSTANCE_KEY, value: Buffer.from(instance) };
    this.#store.commit([change], { backup: true }).catch(this.#unwritten);
    return instance;
  }

  readonly #unwritten = (error: unknown): void =>
    this.#log.warning(`the journal's own id is not written: ${messageOf(error)}`);

  /** The entry, and the events of the change that it is about: both are on the medium when it settles. */
  async record(draft: AuditDraft): Promise<void> {
    const settled = this.events.settled(); // never rejects: what is refused is tried again
    await this.audit.record(draft);
    await settled;
  }

  /** Never rejects: the code was right, and is used as long as this process runs. */
  async keepCode(used: UsedCode): Promise<void> {
    const change = { part: HEADS, key: CODE_KEY, value: Buffer.from(JSON.stringify(used)) };
    await this.#store
      .commit([change], { backup: true })
      .catch((error: unknown) =>
        this.#log.warning(`after a restart, a used sign-in code counts as new: ${messageOf(error)}`),
      );
  }

  configure(settings: JournalSettings): void {
    this.audit.settings = settings.audit;
    this.webhooks.adopt(settings.webhooks);
  }

  /** The file was opened anew: a commit that was interrupted is in it whole or not at all. */
  #adopt(records: OpenedStore["records"]): void {
    this.tokens.adopt(recordsOf(records, TOKENS));
    this.audit.adopt(auditOf(records));
    this.events.adopt({
      heads: recordsOf(records, HEADS),
      events: recordsOf(records, EVENTS),
      marks: recordsOf(records, MARKS),
    });
  }

  /** Never rejects. */
  async close(): Promise<void> {
    this.#end();
    await this.#store.close().catch(this.#unclosed);
  }

  /** The same, done when it returns. Never throws. */
  closeNow(): void {
    this.#end();
    try {
      this.#store.closeNow();
    } catch (error) {
      this.#unclosed(error);
    }
  }

  /** What is pending is handed to the store before its last word. */
  #end(): void {
    this.tokens[Symbol.dispose]();
    this.webhooks[Symbol.dispose]();
    this.events.flush();
    this.webhooks.flush();
    this.events[Symbol.dispose]();
  }

  readonly #unclosed = (error: unknown): void => this.#log.error(`closing the journal: ${messageOf(error)}`);
}

const INSTANCE_KEY = "instance";
const CODE_KEY = "code";
export const UNSENT: SendWebhook = () => Promise.reject(new Error("nothing is sent from here"));

/** Of what weir does by itself. */
const BY_PROGRAM = { actor: { kind: "program", name: "weir" }, from: "", request: "" } as const;

function recordsOf(records: OpenedStore["records"], part: string): StoredRecords {
  return records.get(part) ?? [];
}

function auditOf(records: OpenedStore["records"]) {
  return { audit: recordsOf(records, AUDIT), heads: recordsOf(records, HEADS) };
}
