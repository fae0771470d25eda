/** The tokens of one journal: kept as hashes, looked up for every request, and gone from the turn in which they end. */
import { SCOPES, type Scope, type TokenGrant } from "#core/access.ts";
import { ABORTED, ApiError, messageOf, StoreError } from "#core/errors.ts";
import type { TokenDraft, TokenView } from "#core/journal.ts";
import { withoutFolders } from "#core/places.ts";
import type { AsyncStore, StoredRecords } from "#store/opened-store.ts";
import { TOKENS } from "./parts.ts";
import { idOf, matches, newToken } from "./token-text.ts";

const MOST_TOKENS = 1000;
const MOST_NAME_CHARACTERS = 64;
/** So much may be between a use and what is kept of it. */
const USED_STEP_MS = 3_600_000;
/** So long a clock that was set ahead goes unnoticed. */
const MOST_WAIT_MS = 60_000;

interface StoredToken {
  readonly name: string;
  readonly hash: string;
  readonly scopes: readonly Scope[];
  readonly listener: string | null;
  readonly created_at: number;
  readonly expires_at: number | null;
  readonly used_at: number | null;
}

interface Token {
  readonly view: TokenView;
  readonly hash: Buffer;
  readonly grant: TokenGrant;
  readonly end: AbortController;
}

export class TokenBook implements Disposable {
  readonly #store: Pick<AsyncStore, "commit">;
  readonly #nowMs: () => number;
  readonly #tokens = new Map<string, Token>();
  /** Names of tokens that are being written. */
  readonly #reserved = new Set<string>();
  /** Ids of tokens that are being revoked: what is written behind that would bring them back. */
  readonly #leaving = new Set<string>();
  #timer: NodeJS.Timeout | null = null;

  constructor(store: Pick<AsyncStore, "commit">, records: StoredRecords, nowMs: () => number) {
    this.#store = store;
    this.#nowMs = nowMs;
    this.adopt(records);
  }

  /** Goes by what the file holds: streams of a token that it has not got end. */
  adopt(records: StoredRecords): void {
    const found = new Map(records.map(([id, value]) => [id, value.toString()]));
    for (const id of this.#tokens.keys()) if (!found.has(id)) this.#forget(id);
    for (const [id, text] of found) {
      const { name, hash, scopes, listener, ...rest }: StoredToken = JSON.parse(text);
      const times = { createdAtMs: rest.created_at, expiresAtMs: rest.expires_at, usedAtMs: rest.used_at };
      this.#put({ id, name, scopes, listener, ...times }, Buffer.from(hash, "hex"));
    }
    this.#watchExpiry();
  }

  /** Null: unknown or expired. */
  find(text: string): TokenGrant | null {
    const token = this.#tokens.get(idOf(text) ?? "");
    if (token === undefined || !matches(text, token.hash) || this.#isExpired(token)) return null;
    const { grant } = token.end.signal.aborted ? this.#put(token.view, token.hash) : token; // the clock was set back
    this.#noteUse(token);
    return grant;
  }

  views(): readonly TokenView[] {
    const all = [...this.#tokens.values()].map(({ view }) => view);
    return all.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  }

  async create(draft: TokenDraft): Promise<{ readonly view: TokenView; readonly token: string }> {
    const name = this.#checked(draft);
    const { id, token, hash } = newToken();
    const { listener, expiresAtMs } = draft;
    const scopes = SCOPES.filter((scope) => draft.scopes.includes(scope));
    const createdAtMs = Math.trunc(this.#nowMs());
    const view: TokenView = { id, name, scopes, listener, createdAtMs, expiresAtMs, usedAtMs: null };
    this.#reserved.add(name);
    try {
      await this.#keep(view, hash);
    } catch (error) {
      throw notWritten(error);
    } finally {
      this.#reserved.delete(name);
    }
    this.#put(view, hash);
    this.#watchExpiry();
    return { view, token };
  }

  async revoke(id: string): Promise<TokenView> {
    const token = this.#tokens.get(id);
    if (token === undefined) throw new ApiError(404, "there is no token with this id");
    this.#leaving.add(id);
    try {
      await this.#store.commit([{ part: TOKENS, key: id, value: null }], { backup: true });
    } catch (error) {
      throw notWritten(error);
    } finally {
      this.#leaving.delete(id);
    }
    this.#forget(id);
    return token.view;
  }

  [Symbol.dispose](): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    for (const id of this.#tokens.keys()) this.#forget(id);
  }

  /** The name as it is kept. Throws `ApiError`. */
  #checked({ name: given, scopes, listener, expiresAtMs }: TokenDraft): string {
    const name = given.trim();
    if (name === "" || name.length > MOST_NAME_CHARACTERS || /\p{C}/u.test(name))
      throw new ApiError(400, `name: expected 1 to ${MOST_NAME_CHARACTERS} printable characters`);
    if (scopes.length === 0) throw new ApiError(400, `scopes: expected some of ${SCOPES.join(", ")}`);
    if (listener !== null && scopes.some((scope) => scope !== "users"))
      throw new ApiError(
        400,
        "listener: only a token with the scope users alone can be kept to one listener",
      );
    if (expiresAtMs !== null && expiresAtMs <= this.#nowMs())
      throw new ApiError(400, "expires_at: that is over already");
    const isTaken = [...this.#tokens.values()].some(({ view }) => view.name === name);
    if (isTaken || this.#reserved.has(name)) throw new ApiError(409, `there is a token ${name} already`);
    if (this.#tokens.size >= MOST_TOKENS)
      throw new ApiError(409, `there are ${MOST_TOKENS} tokens already; revoke one first`);
    return name;
  }

  #put(view: TokenView, hash: Buffer): Token {
    const known = this.#tokens.get(view.id);
    const live = known?.end.signal.aborted === false ? known : null;
    const end = live?.end ?? new AbortController();
    const { id, name, scopes, listener } = view;
    const grant = live?.grant ?? { id, name, scopes, listener, gone: end.signal };
    const token = { view, hash, grant, end };
    this.#tokens.set(id, token);
    return token;
  }

  #forget(id: string): void {
    this.#tokens.get(id)?.end.abort(ABORTED);
    this.#tokens.delete(id);
  }

  #isExpired({ view: { expiresAtMs } }: Token): boolean {
    return expiresAtMs !== null && this.#nowMs() >= expiresAtMs;
  }

  /** Ends the streams of tokens whose time is over; requests look at the clock themselves. */
  #watchExpiry(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    let delayMs = Infinity;
    for (const token of this.#tokens.values()) {
      const { expiresAtMs } = token.view;
      if (expiresAtMs === null) continue;
      const leftMs = expiresAtMs - this.#nowMs();
      if (leftMs <= 0) token.end.abort(ABORTED);
      delayMs = Math.min(delayMs, MOST_WAIT_MS, leftMs > 0 ? leftMs : MOST_WAIT_MS);
    }
    if (delayMs < Infinity) this.#timer = setTimeout(() => this.#watchExpiry(), delayMs).unref();
  }

  #noteUse({ view, hash }: Token): void {
    const nowMs = this.#nowMs();
    if (this.#leaving.has(view.id)) return;
    if (view.usedAtMs !== null && Math.abs(nowMs - view.usedAtMs) < USED_STEP_MS) return;
    const used = { ...view, usedAtMs: Math.trunc(nowMs) };
    this.#put(used, hash);
    // Worth no error: the next use an hour later is noted again.
    this.#keep(used, hash).catch(() => {});
  }

  async #keep(view: TokenView, hash: Buffer): Promise<void> {
    const stored: StoredToken = {
      name: view.name,
      hash: hash.toString("hex"),
      scopes: view.scopes,
      listener: view.listener,
      created_at: view.createdAtMs,
      expires_at: view.expiresAtMs,
      used_at: view.usedAtMs,
    };
    const value = Buffer.from(JSON.stringify(stored));
    await this.#store.commit([{ part: TOKENS, key: view.id, value }], { backup: true });
  }
}

function notWritten(cause: unknown): unknown {
  if (!(cause instanceof StoreError)) return cause;
  return new ApiError(500, `not written, everything is as before: ${withoutFolders(messageOf(cause), "")}`, {
    cause,
  });
}
