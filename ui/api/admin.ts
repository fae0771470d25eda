/** The way to the admin API, which has a secret of its own. */
import { Store } from "#ui/state/store.ts";
import type { Link } from "./link.ts";
import { ApiError, jsonOf, request, type Method } from "./request.ts";
import { type CodeAsked, Credential } from "./session.ts";

export type AdminState =
  /** Not asked yet. */
  | { readonly kind: "unknown" }
  /** Nothing is managed, or not to be reached this way. */
  | { readonly kind: "absent" }
  /** `refused`: the secret that was given is wrong. */
  | { readonly kind: "locked"; readonly refused: boolean }
  | { readonly kind: "open" };

/** Statuses of the overview that say how things stand. */
const TELLING = [401, 403, 404];

export class AdminLink {
  readonly state = new Store<AdminState>({ kind: "unknown" });
  readonly #link: Link;
  /** None: the Controller's own is tried. */
  readonly #credential: Credential;

  constructor(link: Link) {
    this.#link = link;
    this.#credential = new Credential(link, "weir.session.admin");
  }

  /** As the link's; a code that has opened that one is enough for both. Throws as `probe` does. */
  async unlock(secret: string, code = ""): Promise<CodeAsked | null> {
    const { session } = this.#link;
    const proof = { ...(code === "" ? {} : { code }), ...(session === "" ? {} : { session }) };
    const asked = await this.#credential.give(secret, proof);
    if (asked === null) await this.probe();
    return asked;
  }

  lock(): void {
    this.#credential.drop();
    this.state.set({ kind: "locked", refused: false });
  }

  /** Updates the state of the admin API. Throws `UnreachableError`, and each `ApiError` that is not about that state. */
  async probe(): Promise<void> {
    try {
      await this.call("GET", "overview");
      this.state.set({ kind: "open" });
    } catch (error) {
      if (!(error instanceof ApiError) || !TELLING.includes(error.status)) throw error; // otherwise `call` has set the state
    }
  }

  /** Throws `ApiError` or `UnreachableError`. */
  call<T>(method: Method, path: string, body?: unknown): Promise<T> {
    return this.#ask(`api/admin/${path}`, method, path, body);
  }

  /** The same of what the secret opens besides the users: `api/svc/…`. */
  svc<T>(method: Method, path: string, body?: unknown): Promise<T> {
    return this.#ask(`api/svc/${path}`, method, path, body);
  }

  /** A file of it, as text. */
  async svcText(path: string): Promise<string> {
    return (await this.#fetch(`api/svc/${path}`, "GET", path)).text();
  }

  async #ask<T>(address: string, method: Method, path: string, body?: unknown): Promise<T> {
    return jsonOf<T>(await this.#fetch(address, method, path, body));
  }

  async #fetch(address: string, method: Method, path: string, body?: unknown): Promise<Response> {
    try {
      // one sign-in where the Controller's own credential opens this, too: a token, or the same secret twice
      if (this.#credential.value === "") return await this.#link.ask(method, address, body);
      const response = await request(method, this.#link.urlOf(address), this.#credential.value, body);
      this.#credential.accepted();
      return response;
    } catch (error) {
      const status = error instanceof ApiError ? error.status : 0;
      if (status === 401) this.state.set({ kind: "locked", refused: this.#credential.refused() });
      if (path === "overview" && (status === 404 || status === 403)) this.state.set({ kind: "absent" });
      throw error;
    }
  }
}
