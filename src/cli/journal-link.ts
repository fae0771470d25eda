/** The journal as a command reaches it: its file, or the running weir that has it open. */
import { userInfo } from "node:os";
import type { AuditDraft, AuditVerdict } from "#core/audit.ts";
import { ConfigError } from "#core/errors.ts";
import type { TokenDraft, TokenView } from "#core/journal.ts";
import { SILENT } from "#core/log.ts";
import { OpenJournal } from "#journal/open-journal.ts";
import { journalSettings } from "#runtime/user-settings.ts";
import { Store } from "#store/backup.ts";
import { InUseError } from "#store/file-safety.ts";
import type { AsyncStore, OpenedStore, SupervisedOptions } from "#store/opened-store.ts";
import type { ParsedFlags } from "./flags.ts";
import { addressOf } from "./controller-address.ts";
import { askController, type ControllerAddress } from "./controller-request.ts";
import { linesOf, setUp } from "./load.ts";

export interface JournalLink extends AsyncDisposable {
  tokens(): Promise<readonly TokenView[]>;
  createToken(draft: TokenDraft): Promise<string>;
  /** Rejects where there is none. */
  revokeToken(id: string): Promise<void>;
  auditLines(): Promise<readonly string[]>;
  verifyAudit(): Promise<AuditVerdict>;
}

/** Throws `ConfigError` where no journal is configured, or the weir that runs cannot be asked. */
export async function openJournalLink(flags: ParsedFlags, env: NodeJS.ProcessEnv): Promise<JournalLink> {
  const setup = setUp(flags, env, SILENT);
  const { file, result } = setup.first();
  if (result.errors !== undefined) throw new ConfigError(linesOf(file, result.errors).join("\n"));
  const { config } = result;
  const settings = journalSettings(config, setup.files);
  if (settings === null) throw new ConfigError(`${file}: there is no svc block, so there are no tokens`);
  try {
    return linkToFile(
      await OpenJournal.open(settings, {
        log: SILENT,
        nowMs: Date.now,
        monotonicMs: () => performance.now(),
        openStore,
      }),
    );
  } catch (error) {
    if (!(error instanceof InUseError)) throw error;
    return linkToController(
      addressOf(
        config,
        setup.home,
        settings.secret,
        "a running weir has the journal open and cannot be asked",
      ),
    );
  }
}

/** Without a thread: a command has nothing else to do meanwhile. */
async function openStore(options: SupervisedOptions): Promise<OpenedStore> {
  const store = Store.open(options);
  const records = new Map(options.parts.map((part) => [part, [...store.entries(part)]] as const));
  const closeNow = (): void => store[Symbol.dispose]();
  const here: AsyncStore = {
    commit: async (changes, how) => store.commit(changes, how),
    compact: async () => store.compact(),
    close: async () => closeNow(),
    closeNow,
  };
  return { store: here, records };
}

function linkToFile(journal: OpenJournal): JournalLink {
  const draft = {
    actor: { kind: "program", name: "weir token" },
    from: `command line, user ${userInfo().username}`,
    request: "",
  } as const;
  const record = (what: Pick<AuditDraft, "action" | "target" | "after">) =>
    journal.audit.record({ ...draft, ...what });
  return {
    tokens: async () => journal.tokens.views(),
    async createToken(wanted) {
      const { view, token } = await journal.tokens.create(wanted);
      const { id, name, scopes, listener, expiresAtMs } = view;
      await record({
        action: "token.create",
        target: id,
        after: { name, scopes, listener, expires_at: expiresAtMs },
      });
      return token;
    },
    async revokeToken(id) {
      await journal.tokens.revoke(id);
      await record({ action: "token.revoke", target: id });
    },
    auditLines: async () => [...journal.audit.lines()],
    verifyAudit: async () => journal.audit.verify(),
    [Symbol.asyncDispose]: () => journal.close(),
  };
}

interface TokenJson {
  readonly id: string;
  readonly name: string;
  readonly scopes: TokenView["scopes"];
  readonly listener?: string;
  readonly created_at: number;
  readonly expires_at?: number;
  readonly used_at?: number;
}

function linkToController(address: ControllerAddress): JournalLink {
  return {
    async tokens() {
      const { tokens }: { tokens: readonly TokenJson[] } = JSON.parse(
        await askController(address, "GET", "/api/svc/tokens"),
      );
      return tokens.map(viewOf);
    },
    async createToken({ name, scopes, listener, expiresAtMs }) {
      const body = {
        name,
        scopes,
        ...(listener === null ? {} : { listener }),
        ...(expiresAtMs === null ? {} : { expires_at: expiresAtMs }),
      };
      const answer = await askController(address, "POST", "/api/svc/tokens", body);
      const { token }: { token: string } = JSON.parse(answer);
      return token;
    },
    async revokeToken(id) {
      await askController(address, "DELETE", `/api/svc/tokens/${encodeURIComponent(id)}`);
    },
    async auditLines() {
      const text = await askController(address, "GET", "/api/svc/audit/export.ndjson");
      return text.split("\n").filter((line) => line !== "");
    },
    verifyAudit: async () => JSON.parse(await askController(address, "GET", "/api/svc/audit/verify")),
    [Symbol.asyncDispose]: async () => {},
  };
}

function viewOf(json: TokenJson): TokenView {
  const { id, name, scopes } = json;
  const times = {
    createdAtMs: json.created_at,
    expiresAtMs: json.expires_at ?? null,
    usedAtMs: json.used_at ?? null,
  };
  return { id, name, scopes, listener: json.listener ?? null, ...times };
}
