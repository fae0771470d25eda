/** The journal for the life of the program; in which file it is, and whether there is one, changes with the configuration. */
import type { TokenGrant } from "#core/access.ts";
import type { AuditDraft, AuditPage, AuditQuery, AuditVerdict } from "#core/audit.ts";
import { ApiError, messageOf } from "#core/errors.ts";
import type { EventDraft, EventFeed, EventSinks, WebhooksControl, WeirEvent } from "#core/events.ts";
import type { JournalControl, TokenDraft, TokenView } from "#core/journal.ts";
import { withoutFolders } from "#core/places.ts";
import { Retry } from "#lib/retry.ts";
import { Codes } from "./code-gate.ts";
import { openReports } from "./event-reports.ts";
import { OpenJournal, type OpenJournalEnv, UNSENT } from "./open-journal.ts";
import type { JournalSettings } from "./settings.ts";
import type { SendWebhook } from "./webhook-settings.ts";
import { Sessions } from "./sessions.ts";

/** What the program that runs gives its journal. */
export interface Running {
  /** Of the build. */
  readonly version: string;
  readonly send: SendWebhook;
}

/** What was known when another process got the file, and what has been reported to it since. */
interface LentJournal {
  readonly journal: OpenJournal | null;
  readonly marks: Map<string, string | null>;
}

export type EventMark = readonly [key: string, value: string | null];

/** The process that has the file. Neither throws. */
export interface JournalForward {
  event(draft: EventDraft, mark: EventMark | null): void;
  audit(draft: AuditDraft): void;
}

const MOST_WAITING = 1000;
const VERSION_KEY = "version";

export class Journal implements JournalControl {
  readonly sessions = new Sessions();
  readonly codes: Codes;
  readonly #env: OpenJournalEnv;
  readonly #retry = new Retry(() => this.#tryAgain());
  #settings: JournalSettings | null = null;
  #open: OpenJournal | null = null;
  /** Why there is none although one is configured. */
  #reason = "";
  /** Files are opened and closed one after the other. */
  #queue: Promise<void> = Promise.resolve();
  #isOver = false;
  /** Reports from before the file is open. */
  readonly #waiting: (() => void)[] = [];
  /** Until it is known that there is no file, there may be one. */
  #mayWait = true;
  #running: Running | null = null;
  /** Another process has the file and gets what is reported; null: not so. */
  #forward: JournalForward | null = null;
  #lent: LentJournal | null = null;
  readonly #watchers = new Set<(event: WeirEvent) => void>();
  /** What the parts of weir are given to report to. */
  readonly sinks: EventSinks;

  constructor(env: Omit<OpenJournalEnv, "send" | "events">) {
    this.sinks = openReports({
      nowMs: env.nowMs,
      when: (report) => this.#when(report),
      markOf: (key) => this.#markOf(key),
      emit: (draft, mark) => this.#emit(draft, mark ?? null),
    });
    this.codes = new Codes({
      nowMs: env.nowMs,
      keep: async (used) => this.#open?.keepCode(used),
      warn: (text) => env.log.warning(text),
    });
    this.#env = { ...env, send: () => this.#running?.send ?? UNSENT, events: this.sinks };
  }

  /**
   * Puts settings in force, null: none. Never rejects: a file that cannot be opened is tried again by itself, and until
   * then tokens open nothing.
   */
  adopt(settings: JournalSettings | null, running: Running): Promise<void> {
    this.#running = running;
    this.#askCodes(settings?.totpKey ?? null);
    this.#queue = this.#queue.then(() => this.#adopt(settings));
    return this.#queue;
  }

  #askCodes(key: Buffer | null): void {
    if (key !== null && !this.codes.isOn)
      this.#env.log.info(
        "svc.totp-file: a secret opens nothing without a code; programs and other dashboards use tokens (weir token)",
      );
    this.codes.adopt(key);
  }

  /** An event of the process before. What both have noticed is said once. */
  take(draft: EventDraft, mark: EventMark | null): void {
    this.#when(() => {
      const [key, value] = mark ?? ["", null];
      if (value === null || this.#markOf(key) !== value) this.#emit(draft, mark);
    });
  }

  #markOf(key: string): string | null {
    return this.#lent?.marks.get(key) ?? (this.#open ?? this.#lent?.journal)?.events.markOf(key) ?? null;
  }

  #emit(draft: EventDraft, mark: EventMark | null): void {
    if (this.#forward === null) return this.#open?.events.emit(draft, mark);
    if (mark !== null) this.#lent?.marks.set(...mark);
    this.#forward.event(draft, mark);
  }

  /** Closes the file, which another process gets; reports wait from now on. Never rejects. */
  release(): Promise<void> {
    this.#queue = this.#queue.then(async () => {
      this.#retry.stop();
      const left = this.#open;
      this.#lent = { journal: left, marks: new Map() };
      this.#open = null;
      await left?.close();
    });
    return this.#queue;
  }

  /** The file is another process's for good, and `forward` gets what waits and what is still reported. */
  forward(forward: JournalForward): void {
    this.#forward = forward;
    for (const report of this.#waiting.splice(0)) report();
  }

  /** Opens the file again. Never rejects: what cannot be opened is tried again. */
  async reclaim(): Promise<void> {
    this.#lent = null;
    if (this.#running !== null) await this.adopt(this.#settings, this.#running);
  }

  async #adopt(settings: JournalSettings | null): Promise<void> {
    if (this.#isOver || this.#lent !== null) return;
    this.#settings = settings;
    this.#mayWait = settings !== null;
    this.#retry.stop();
    if (settings !== null && this.#open?.path === settings.path) {
      this.#open.configure(settings);
      return;
    }
    const left = this.#open;
    this.#open = null;
    await left?.close();
    if (settings === null) return this.#forgetReports();
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
    if (opened.usedCode !== null) this.codes.recall(opened.usedCode);
    opened.events.watch((event) => {
      for (const on of this.#watchers) on(event);
    });
    for (const report of this.#waiting.splice(0)) report();
    this.#reportVersion(opened);
  }

  /** What is reported while no file is open is so once there is one. */
  #when(report: () => void): void {
    if (this.#open !== null || this.#forward !== null) report();
    else if (this.#mayWait && this.#waiting.length < MOST_WAITING) this.#waiting.push(report);
  }

  #forgetReports(): void {
    this.#mayWait = false;
    this.#waiting.length = 0;
  }

  #reportVersion({ events }: OpenJournal): void {
    const version = this.#running?.version ?? null;
    const before = events.markOf(VERSION_KEY);
    if (version === null || before === version) return;
    const data = { from: before, to: version };
    events.emit({ type: "program.upgraded", subject: "program", data }, [VERSION_KEY, version]);
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

  /** Without an open file the entry waits for one, like reports. */
  async record(draft: AuditDraft): Promise<void> {
    if (this.#open !== null) return this.#open.record(draft);
    return this.#when(() => {
      if (this.#forward === null) void this.#open?.record(draft);
      else this.#forward.audit(draft);
    });
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

  readonly events: EventFeed = {
    since: (seq) => this.#demand().events.since(seq),
    watch: (on) => {
      this.#demand();
      this.#watchers.add(on);
      return { [Symbol.dispose]: () => void this.#watchers.delete(on) };
    },
  };

  readonly webhooks: WebhooksControl = {
    views: () => this.#demand().webhooks.views(),
    deadLetters: (name) => this.#demand().webhooks.deadLetters(name),
    resend: async (name) => this.#demand().webhooks.resend(name),
    test: async (name) => {
      const { webhooks, events } = this.#demand();
      webhooks.demand(name);
      const { promise, resolve } = Promise.withResolvers<void>();
      events.emit({ type: "webhook.test", subject: `webhook/${name}`, data: {} }, null, resolve);
      return promise;
    },
  };

  #demand(): OpenJournal {
    if (this.#open !== null) return this.#open;
    if (this.#settings === null) throw new ApiError(404, "Resource not found");
    throw new ApiError(500, `the journal cannot be opened at present, it is tried again: ${this.#why()}`);
  }

  #why(): string {
    return withoutFolders(this.#reason, this.#settings?.path ?? "");
  }
}
