/** What the page signs its requests with: a session, which stands for a secret so that the page need not keep that. */
import { keepSession, keptSession } from "#ui/state/kept.ts";
import { ApiError, jsonOf, request } from "./request.ts";

interface Base {
  urlOf(path: string): URL;
}

const PATH = "api/svc/session";

export interface Proof {
  readonly code?: string;
  readonly session?: string;
}

/** A code of an authenticator app is needed, was wrong or used before, or none is looked at for some minutes. */
export type CodeAsked = "needed" | "wrong" | "later";

function codeAsked({ status, field }: ApiError, isGiven: boolean): CodeAsked | null {
  if (status === 429) return "later";
  if (field !== "code") return null;
  return isGiven ? "wrong" : "needed";
}

export class Credential {
  readonly #base: Base;
  /** Under which the session is kept, for as long as the page's tab is open. */
  readonly #key: string;
  #value: string;
  #isSession: boolean;
  /** It was given on this page, and nothing has been opened with it yet. */
  #isNew = false;

  constructor(base: Base, key: string) {
    this.#base = base;
    this.#key = key;
    this.#value = keptSession(key);
    this.#isSession = this.#value !== "";
  }

  /** "": there is none. */
  get value(): string {
    return this.#value;
  }

  /**
   * What there is no session for, a token or a wrong secret, is used as it is until the page is left; without an answer nothing
   * is. `proof`: a code, or a session that one has opened. Answers with what is asked for besides the secret; null: nothing.
   * Never rejects.
   */
  async give(secret: string, proof: Proof = {}): Promise<CodeAsked | null> {
    this.#isNew = true;
    this.#isSession = false;
    const isGiven = (proof.code ?? "") !== "";
    const opened = request("POST", this.#base.urlOf(PATH), secret, proof).then(tokenOf);
    return opened.then(
      (session) => {
        this.#keep(session);
        return null;
      },
      (error: unknown) => {
        const asked = error instanceof ApiError ? codeAsked(error, isGiven) : null;
        this.#value = error instanceof ApiError && asked === null ? secret : "";
        return asked;
      },
    );
  }

  /** What an address may hold: a session, never a secret or a token. */
  get inAddress(): string {
    return this.#isSession ? this.#value : "";
  }

  /** By the code of a link. False: it opens nothing, and everything stays as it is. Never rejects. */
  async giveCode(code: string): Promise<boolean> {
    const opened = request("POST", this.#base.urlOf(`${PATH}/code`), "", { code }).then(tokenOf);
    return opened.then(
      (session) => {
        this.#keep(session);
        return true;
      },
      (error: unknown) => !(error instanceof ApiError),
    );
  }

  /** Signs out. A session that cannot be ended now ends by itself. */
  drop(): void {
    this.#isNew = false;
    if (this.#value !== "") void request("DELETE", this.#base.urlOf(PATH), this.#value).catch(() => {});
    this.#keep("");
  }

  /** It has opened something. */
  accepted(): void {
    this.#isNew = false;
  }

  /** It was refused. True: it was given just now, and is wrong; false: a session is over, and forgotten. */
  refused(): boolean {
    if (!this.#isNew) this.#keep("");
    else keepSession(this.#key, "");
    return this.#value !== "";
  }

  #keep(session: string): void {
    this.#value = session;
    this.#isSession = session !== "";
    keepSession(this.#key, session);
  }
}

const tokenOf = async (response: Response): Promise<string> =>
  (await jsonOf<{ token: string }>(response)).token;
