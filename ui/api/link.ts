/** The way to the Controller: requests, streams, and one state: is it reachable, and is the secret accepted? */
import { Store } from "#ui/state/store.ts";
import { ApiError, jsonOf, request, UnreachableError, type Method } from "./request.ts";
import { type CodeAsked, Credential } from "./session.ts";

export type LinkState =
  | { readonly kind: "connecting" }
  /** `refused`: the secret that was given is wrong. `staleLink`: so is the link that the page was opened by. */
  | { readonly kind: "locked"; readonly refused: boolean; readonly staleLink: boolean }
  /** The Controller does not serve this page's host name without a secret. */
  | { readonly kind: "forbidden" }
  /** `why`: the fault that came instead of an answer. */
  | { readonly kind: "unreachable"; readonly why: unknown }
  | { readonly kind: "ready"; readonly version: string };

const RETRY_MS = 2_000;
/** Statuses that the Controller itself refuses with: the secret, or the name of this page's host. */
const REFUSALS = [401, 403];

export class Link {
  readonly state = new Store<LinkState>({ kind: "connecting" });
  /** The dashboard lies one folder below the API, wherever a reverse proxy puts both. */
  readonly #base: URL;
  readonly #credential: Credential;
  #staleLink = false;
  #probing: Promise<void> | null = null;
  #retry: ReturnType<typeof setTimeout> | undefined;

  constructor(page: string) {
    this.#base = new URL("../", page);
    this.#credential = new Credential(this, "weir.session");
  }

  /** Answers with what is asked for besides the secret; null: nothing. Never rejects. */
  async unlock(secret: string, code = ""): Promise<CodeAsked | null> {
    const asked = await this.#credential.give(secret, code === "" ? {} : { code });
    if (asked === null) await this.probe();
    return asked;
  }

  /** "": there is none. */
  get session(): string {
    return this.#credential.inAddress;
  }

  /** With the code of a link. Never rejects. */
  async unlockByCode(code: string): Promise<void> {
    this.#staleLink = !(await this.#credential.giveCode(code));
  }

  lock(): void {
    this.#credential.drop();
    void this.probe();
  }

  /** Finds out how things stand; repeats the request by itself until there is an answer. */
  probe(): Promise<void> {
    this.#probing ??= this.#ask().finally(() => (this.#probing = null));
    return this.#probing;
  }

  async #ask(): Promise<void> {
    clearTimeout(this.#retry);
    try {
      const { version } = await this.get<{ version: string }>("version");
      if (this.state.value.kind !== "ready") this.state.set({ kind: "ready", version });
    } catch (error) {
      if (error instanceof ApiError && REFUSALS.includes(error.status)) return; // `#fetch` has set the state
      this.state.set({ kind: "unreachable", why: error });
      this.#retry = setTimeout(() => void this.probe(), RETRY_MS);
    }
  }

  /** Throws `ApiError` or `UnreachableError`. */
  get<T>(path: string): Promise<T> {
    return this.call<T>("GET", path);
  }

  /** `timeoutMs`: absent, what is enough for all but large downloads. */
  async send(method: Method, path: string, body?: unknown, timeoutMs?: number): Promise<void> {
    await this.#fetch(method, path, body, timeoutMs);
  }

  async call<T>(method: Method, path: string, body?: unknown): Promise<T> {
    return jsonOf<T>(await this.#fetch(method, path, body));
  }

  async text(path: string): Promise<string> {
    return (await this.#fetch("GET", path)).text();
  }

  /** With this secret, and no word about how things stand here: whoever asks reads the answer by itself. */
  ask(method: Method, path: string, body?: unknown): Promise<Response> {
    return request(method, this.urlOf(path), this.#credential.value, body);
  }

  async bytes(path: string): Promise<Blob> {
    return (await this.#fetch("GET", path)).blob();
  }

  /** A backup, with its key (a passphrase, or lines of age-keygen; "" is none) beside it; `sum`: it is the file with this one. */
  sendBackup<T>(path: string, file: File, key: string, sum = ""): Promise<T> {
    const headers = {
      "content-type": "application/octet-stream",
      ...(key === ""
        ? {}
        : { "weir-backup-key": btoa(String.fromCharCode(...new TextEncoder().encode(key))) }),
    };
    return this.call<T>("POST", sum === "" ? path : `${path}?sum=${sum}`, { file, headers });
  }

  async #fetch(method: Method, path: string, body?: unknown, timeoutMs?: number): Promise<Response> {
    try {
      const response = await request(method, this.urlOf(path), this.#credential.value, body, timeoutMs);
      this.#credential.accepted();
      return response;
    } catch (error) {
      if (error instanceof UnreachableError && path !== "version") void this.probe();
      const status = error instanceof ApiError ? error.status : 0;
      if (status === 401)
        this.state.set({
          kind: "locked",
          refused: this.#credential.refused(),
          staleLink: this.#staleLink,
        });
      if (status === 403 && path === "version") this.state.set({ kind: "forbidden" });
      throw error;
    }
  }

  urlOf(path: string): URL {
    return new URL(path, this.#base);
  }

  /** Where a WebSocket of this path goes; it has no other place for the session than the query. */
  socketUrl(path: string): URL {
    const url = this.urlOf(path);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    const session = this.#credential.inAddress;
    if (session !== "") url.searchParams.set("token", session);
    return url;
  }
}
