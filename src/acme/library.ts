/** `acme-client` over connections of ours: it is loaded when something is to be ordered, and never before. */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Duplex } from "node:stream";
import type * as AcmeClient from "acme-client";

export type Library = typeof AcmeClient;

export interface LibraryEnv {
  /** The stream to a server of https, its certificate verified. */
  connect(url: URL, signal: AbortSignal): Promise<Duplex>;
  readonly userAgent: string;
  readonly signal: AbortSignal;
}

/** What an authority asked for while it refused. */
export interface Refusals {
  /** 0: nothing. */
  retryAfterMs: number;
  /** The kind of its last error (RFC 8555 §6.7); empty: none. */
  type: string;
}

const REQUEST_TIMEOUT_MS = 30_000;
/** Directories, orders and chains have a few KiB. */
const LARGEST_ANSWER_BYTES = 1024 * 1024;

/**
 * Runs `work` with the library. Its HTTP client is one for the process, so what is set here holds for the requests of this
 * work alone, known by their asynchronous context: no proxy of the environment, no redirects, no retries (they would
 * pass over what is remembered of failures), answers bounded in size and time.
 */
export async function withLibrary<T>(
  { connect, userAgent, signal }: LibraryEnv,
  refusals: Refusals,
  work: (library: Library) => Promise<T>,
): Promise<T> {
  const library = await import("acme-client");
  const { axios } = library;
  const mine = new AsyncLocalStorage<true>();
  const httpsAgent = new ConnectingAgent((url) => connect(url, signal));
  Object.assign(axios.defaults, { acmeSettings: { retryMaxAttempts: 0 } });
  const requests = axios.interceptors.request.use((config) => {
    if (mine.getStore() === undefined) return config;
    config.headers.set("User-Agent", userAgent);
    return Object.assign(config, {
      httpsAgent,
      signal,
      proxy: false,
      maxRedirects: 0,
      timeout: REQUEST_TIMEOUT_MS,
      maxContentLength: LARGEST_ANSWER_BYTES,
    });
  });
  const answers = axios.interceptors.response.use((response) => {
    if (mine.getStore() !== undefined && response.status >= 400) note(response, refusals);
    return response;
  });
  try {
    return await mine.run(true, () => work(library));
  } finally {
    axios.interceptors.request.eject(requests);
    axios.interceptors.response.eject(answers);
    httpsAgent.destroy();
  }
}

function note(
  { status, headers, data }: { readonly status: number; readonly headers: object; readonly data: unknown },
  refusals: Refusals,
): void {
  const { "retry-after": retryAfter = "" }: { readonly "retry-after"?: unknown } = headers;
  if (status === 429 || status === 503)
    refusals.retryAfterMs = parseRetryAfterMs(String(retryAfter), Date.now());
  const hasType = typeof data === "object" && data !== null && "type" in data;
  refusals.type = hasType ? String(data.type) : "";
}

/** Seconds, or a date (RFC 9110 §10.2.3); 0 where it is neither. */
export function parseRetryAfterMs(text: string, nowMs: number): number {
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const atMs = Date.parse(text);
  return Number.isNaN(atMs) ? 0 : Math.max(0, atMs - nowMs);
}

// An import of it by its name loads the runtime's fetch client: lib/node-http.ts.
const { Agent } = process.getBuiltinModule("node:https");

/** One connection for all requests of an order. */
class ConnectingAgent extends Agent {
  readonly #connect: (url: URL) => Promise<Duplex>;

  constructor(connect: (url: URL) => Promise<Duplex>) {
    super({ keepAlive: true, maxSockets: 1 });
    this.#connect = connect;
  }

  override createConnection(
    { host, port }: { readonly host?: string | null; readonly port?: string | number | null },
    onMade?: (error: Error | null, stream: Duplex) => void,
  ): undefined {
    const literal = host?.includes(":") === true ? `[${host}]` : host;
    this.#connect(new URL(`https://${literal}:${port ?? 443}`)).then(
      (stream) => onMade?.(null, stream),
      (error: Error) => onMade?.(error, undefined as never),
    );
  }
}
