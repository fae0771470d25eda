/** Who is signed in at a dashboard: tokens that stand for a secret until they are over, in memory only. */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { SessionBook } from "#core/access.ts";

const SESSION_MS = 12 * 3_600_000;
const CODE_MS = 10 * 60_000;
const TOKEN_BYTES = 32;
/** The oldest goes first. */
const MOST_SESSIONS = 64;

interface Session {
  /** Of the secrets that it stands for. */
  readonly marks: ReadonlySet<string>;
  readonly endsAtMs: number;
}

interface Code {
  readonly digest: Buffer;
  readonly endsAtMs: number;
}

export class Sessions implements SessionBook {
  /** By the digest of the token: how long a look-up takes says nothing of a token. */
  readonly #sessions = new Map<string, Session>();
  readonly #nowMs: () => number;
  #code: Code | null = null;

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  open(marks: readonly string[]): { readonly token: string; readonly lastsMs: number } {
    const [oldest] = this.#sessions.keys();
    if (this.#sessions.size >= MOST_SESSIONS && oldest !== undefined) this.#sessions.delete(oldest);
    const token = randomBytes(TOKEN_BYTES).toString("base64url");
    this.#sessions.set(keyOf(token), { marks: new Set(marks), endsAtMs: this.#nowMs() + SESSION_MS });
    return { token, lastsMs: SESSION_MS };
  }

  opens(token: string, mark: string): boolean {
    const key = keyOf(token);
    const session = this.#sessions.get(key);
    if (session === undefined) return false;
    if (session.endsAtMs > this.#nowMs()) return session.marks.has(mark);
    this.#sessions.delete(key);
    return false;
  }

  close(token: string): void {
    this.#sessions.delete(keyOf(token));
  }

  newCode(): string {
    const code = randomBytes(TOKEN_BYTES).toString("base64url");
    this.#code = { digest: digestOf(code), endsAtMs: this.#nowMs() + CODE_MS };
    return code;
  }

  takeCode(guess: string): boolean {
    const code = this.#code;
    if (code === null) return false;
    const isRight = timingSafeEqual(digestOf(guess), code.digest) && code.endsAtMs > this.#nowMs();
    if (isRight) this.#code = null;
    return isRight;
  }
}

const digestOf = (text: string): Buffer => createHash("sha256").update(text).digest();
const keyOf = (token: string): string => digestOf(token).toString("base64");
