/** The way to the Controller: requests, streams, and one state that says whether there is anybody, and whether we may. */
import { Store } from "#ui/state/store.ts";

export type LinkState =
  | { readonly kind: "connecting" }
  /** `refused`: the secret that was given is wrong. */
  | { readonly kind: "locked"; readonly refused: boolean }
  /** The Controller does not serve this page's host name without a secret. */
  | { readonly kind: "forbidden" }
  | { readonly kind: "unreachable" }
  | { readonly kind: "ready"; readonly version: string };

/** An answer that is not 2xx; the message is the Controller's own. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Nobody answered. */
export class UnreachableError extends Error {
  override readonly name = "UnreachableError";
  constructor() {
    super("the Controller cannot be reached");
  }
}

const RETRY_MS = 2_000;
/** A delay test of a whole group may take its time; nothing takes longer. */
const TIMEOUT_MS = 60_000;

export class Link {
  readonly state = new Store<LinkState>({ kind: "connecting" });
  /** The dashboard lies one folder below the API, wherever a reverse proxy puts both. */
  readonly #base: URL;
  /** Here and nowhere else. */
  #secret = "";
  #probing: Promise<void> | null = null;
  #retry = 0;

  constructor(page: string) {
    this.#base = new URL("../", page);
  }

  unlock(secret: string): Promise<void> {
    this.#secret = secret;
    return this.probe();
  }

  lock(): void {
    this.#secret = "";
    void this.probe();
  }

  /** Finds out how things stand; goes on asking by itself as long as nobody answers. */
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
      if (error instanceof ApiError && error.status < 500) return; // `#fetch` has said it
      this.state.set({ kind: "unreachable" });
      this.#retry = setTimeout(() => void this.probe(), RETRY_MS);
    }
  }

  /** Throws `ApiError` or `UnreachableError`. */
  async get<T>(path: string): Promise<T> {
    return (await (await this.#fetch("GET", path)).json()) as T;
  }

  async send(method: "PUT" | "PATCH" | "POST" | "DELETE", path: string, body?: unknown): Promise<void> {
    await this.#fetch(method, path, body);
  }

  async #fetch(method: string, path: string, body?: unknown): Promise<Response> {
    const response = await fetch(new URL(path, this.#base), {
      method,
      headers: this.#secret === "" ? {} : { authorization: `Bearer ${asciiBytes(this.#secret)}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      cache: "no-store",
      credentials: "omit",
      signal: AbortSignal.timeout(TIMEOUT_MS),
    }).catch(() => null);
    if (response === null) {
      if (path !== "version") void this.probe();
      throw new UnreachableError();
    }
    if (response.ok) return response;
    if (response.status === 401) this.state.set({ kind: "locked", refused: this.#secret !== "" });
    if (response.status === 403 && path === "version") this.state.set({ kind: "forbidden" });
    throw new ApiError(response.status, await messageOf(response));
  }

  /** Where a WebSocket of this path goes; it has no other place for the secret than the query. */
  socketUrl(path: string): URL {
    const url = new URL(path, this.#base);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    if (this.#secret !== "") url.searchParams.set("token", this.#secret);
    return url;
  }
}

async function messageOf(response: Response): Promise<string> {
  const text = await response.text().catch(() => "");
  try {
    const { message } = JSON.parse(text) as { message?: unknown };
    if (typeof message === "string" && message !== "") return message;
  } catch {
    // not JSON: the text itself is the message
  }
  return text.trim().slice(0, 500) || `status ${response.status}`;
}

/** Header values are bytes to a browser: a secret outside ASCII goes as its UTF-8 bytes, one character each. */
function asciiBytes(text: string): string {
  return String.fromCharCode(...new TextEncoder().encode(text));
}
