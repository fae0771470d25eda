/** The real program as a server with managed users, and a client of its admin API. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeCertificate } from "./certificate.ts";
import { besideOf, type Watcher } from "./fleet-beside.ts";
import { startCore, type Core, type StartOptions } from "./start-core.ts";

export const ADMIN_SECRET = "admin secret with more than 32 bytes";
export const CONTROLLER_SECRET = "controller secret";

/** A folder of its own for the state file, which outlives the program. */
export function stateFolder(
  parent = tmpdir(),
): { readonly path: string; readonly store: string } & Disposable {
  const path = mkdtempSync(join(parent, "weir-state-"));
  const remove = () => rmSync(path, { recursive: true, force: true });
  return { path, store: join(path, "users.db"), [Symbol.dispose]: remove };
}

export interface ManagedOptions {
  readonly store?: string;
  readonly managed?: readonly string[];
  readonly baseUrl?: string;
  readonly controller?: string;
  /** Without the `svc` block. */
  readonly off?: boolean;
  /** In place of `edge` and `side`: YAML without indentation of its own. */
  readonly listeners?: string;
  readonly logLevel?: string;
  /** The `svc.fleet` block, without indentation of its own. */
  readonly fleet?: string;
  /** Further keys of the svc block: YAML without indentation of its own. */
  readonly svc?: string;
  /** Further sections. */
  readonly extra?: string;
}

const { cert, key } = makeCertificate();
const indent = (pem: string) => pem.trim().replaceAll("\n", "\n      ");
/** The keys of a listener that speaks TLS, as they stand under its name. */
export const TLS_KEYS = `    certificate: |
      ${indent(cert)}
    private-key: |
      ${indent(key)}
`;
/** `keys`: further lines of `edge`. */
export const edgeAndSide = (users: string, keys = ""): string => `  - name: edge
    type: vless
    listen: 127.0.0.1
    port: 0
    allow-insecure: true
${keys}    users: ${users}
  - name: side
    type: anytls
    listen: 127.0.0.1
    port: 0
    users: {}
${TLS_KEYS}`;

/** `edge` is vless, `side` is anytls; both on loopback, both managed unless said otherwise. */
export function managedConfig(options: ManagedOptions = {}): string {
  const { store = "users.db", managed = ["edge", "side"], off = false } = options;
  const { listeners = edgeAndSide("[]"), logLevel = "info", fleet, svc: more = "", extra = "" } = options;
  const { baseUrl = "https://proxy.example.com", controller = "127.0.0.1:0" } = options;
  const svc = `
svc:
  secret: ${ADMIN_SECRET}
  public-base-url: "${baseUrl}"
  store: ${store}
  managed-listeners: [${managed.join(", ")}]
${more.replaceAll(/^(?=.)/gm, "  ")}
${fleet === undefined ? "" : `  fleet:\n${fleet.trimEnd().replaceAll(/^/gm, "    ")}\n`}`;
  return `${off ? "" : svc}
external-controller: "${controller}"
external-controller-unix: api.sock
secret: ${CONTROLLER_SECRET}
log-level: ${logLevel}
listeners:
${listeners}rules:
  - MATCH,DIRECT
${extra}`;
}

/** What a test reads of a user; absent members are left out of the list form. */
export interface UserJson {
  readonly id: string;
  readonly inbound: string;
  readonly name: string;
  readonly flow: string;
  readonly enabled: boolean;
  readonly uuid: string;
  readonly password: string;
  readonly upload_bytes: number;
  readonly download_bytes: number;
  readonly traffic_generation: number;
  readonly active_connections: number;
  readonly revision: number;
  readonly subscription_url: string;
}

/** Everything that any answer may hold. */
export interface AnyJson extends UserJson {
  readonly note: string;
  readonly labels: readonly string[];
  readonly message: string;
  readonly error: string;
  readonly users: readonly UserJson[];
  readonly inbounds: readonly { readonly tag: string; readonly revision: number }[];
  readonly listeners: unknown;
  readonly protocols: readonly { readonly type: string }[];
  readonly additional_protocols: readonly { readonly type: string }[];
  readonly capabilities: unknown;
}

export interface Said {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The JSON, or an empty object. */
  readonly json: AnyJson;
}

export interface Ask {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Null: none is sent. */
  readonly secret?: string | null;
}

export interface StartedWith {
  /** Where the state file may lie. */
  readonly folder?: string;
  readonly start?: Omit<StartOptions, "env">;
  /** False: where the environment asks for a fleet, no second node is beside this one; another program of the test has it. */
  readonly isWatched?: boolean;
}

export class ManagedCore implements AsyncDisposable {
  readonly core: Core;
  readonly configText: string;
  readonly url: string;
  /** Of a fleet, where the environment asks for one. */
  #watcher: Watcher | null = null;

  private constructor(core: Core, configText: string, controllerPort: number) {
    this.core = core;
    this.configText = configText;
    this.url = `http://127.0.0.1:${controllerPort}`;
  }

  static async start(options: ManagedOptions & StartedWith = {}): Promise<ManagedCore> {
    const { folder = "", start = {}, off = false, fleet, store, isWatched = true } = options;
    const beside = off || fleet !== undefined ? null : await besideOf(store);
    const configText = managedConfig(beside === null ? options : { ...options, fleet: beside.block });
    const seed = (home: string): void => {
      start.seed?.(home);
      beside?.seed(home);
    };
    const core = await startCore(configText, { ...start, seed, env: { SAFE_PATHS: folder } });
    const managed = new ManagedCore(core, configText, await core.controllerPort());
    if (isWatched) managed.#watcher = (await beside?.watch(configText, folder)) ?? null;
    return managed;
  }

  async ask(
    method: string,
    path: string,
    { body, headers = {}, secret = ADMIN_SECRET }: Ask = {},
  ): Promise<Said> {
    const answer = await fetch(this.url + path, {
      method,
      headers: { ...(secret === null ? {} : { authorization: `Bearer ${secret}` }), ...headers },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await answer.text();
    const isJson = answer.headers.get("content-type")?.startsWith("application/json") === true;
    return {
      status: answer.status,
      headers: answer.headers,
      text,
      json: isJson ? (JSON.parse(text) as AnyJson) : ({} as AnyJson),
    };
  }

  async revision(tag: string): Promise<number> {
    const { json } = await this.ask("GET", "/api/admin/inbounds");
    return json.inbounds.find((view) => view.tag === tag)?.revision ?? 0;
  }

  /** Asks at the present revision; throws on anything but success. */
  async change(tag: string, method: string, path: string, fields: object = {}): Promise<AnyJson> {
    const revision = await this.revision(tag);
    const query = method === "DELETE" ? `?revision=${revision}` : "";
    const body = method === "DELETE" ? {} : { body: { ...fields, revision } };
    const said = await this.ask(method, `/api/admin/users${path}${query}`, body);
    if (said.status >= 300) throw new Error(`${method} ${path}: ${said.status} ${said.text}`);
    return said.json;
  }

  create(tag: string, name: string, fields: object = {}): Promise<AnyJson> {
    return this.change(tag, "POST", "", { inbound: tag, name, ...fields });
  }

  async user(id: string): Promise<AnyJson> {
    return (await this.ask("GET", `/api/admin/users/${id}`)).json;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await using _ = this.#watcher;
    await this.#watcher?.compare(this.url, ADMIN_SECRET);
    await this.core[Symbol.asyncDispose]();
  }
}
