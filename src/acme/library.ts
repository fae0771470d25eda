/** `acme-client` over connections of ours: it is loaded when something is to be ordered, and never before. */
import { AsyncLocalStorage } from "node:async_hooks";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import type { Agent } from "node:https";
import type { Duplex } from "node:stream";
import { messageOf } from "#core/errors.ts";
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
 * Runs `work` with the library. Its HTTP client is one for the process; the requests of this work alone, known by their
 * asynchronous context, go by `exchange` in its place: no proxy of the environment, no redirects, no retries, which would
 * pass over what is remembered of failures.
 */
export async function withLibrary<T>(
  { connect, userAgent, signal }: LibraryEnv,
  refusals: Refusals,
  work: (library: Library) => Promise<T>,
): Promise<T> {
  const library = await import("acme-client");
  const { interceptors } = library.axios;
  const mine = new AsyncLocalStorage<true>();
  const agent = new ConnectingAgent((url) => connect(url, signal));
  const requests = interceptors.request.use((config) => {
    if (mine.getStore() === undefined) return config;
    const adapter: AxiosAdapter = async (written) => {
      const answer = await exchange(written, { agent, userAgent, signal });
      if (answer.status >= 400) note(answer, refusals);
      return answer;
    };
    return Object.assign(config, { adapter });
  });
  try {
    return await mine.run(true, () => work(library));
  } finally {
    interceptors.request.eject(requests);
    agent.destroy();
  }
}

type Axios = Library["axios"];
type AxiosAdapter = Extract<NonNullable<Axios["defaults"]["adapter"]>, (...all: never[]) => unknown>;
type Written = Parameters<AxiosAdapter>[0];
type Answer = Awaited<ReturnType<AxiosAdapter>>;

interface ExchangeEnv {
  readonly agent: Agent;
  readonly userAgent: string;
  readonly signal: AbortSignal;
}

/** One request and its answer, whatever its status is; the body is text. Rejects with what went wrong, as it is. */
async function exchange(config: Written, { agent, userAgent, signal: ended }: ExchangeEnv): Promise<Answer> {
  const { url = "", method = "get", headers, data = "" } = config;
  const slow = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
  const signal = AbortSignal.any([ended, slow]);
  const sent = request(url, {
    agent,
    signal,
    method: method.toUpperCase(),
    headers: { ...headers.toJSON(), "user-agent": userAgent },
  });
  try {
    sent.end(String(data));
    const [response]: readonly IncomingMessage[] = await once(sent, "response");
    if (response === undefined) throw new Error(`${url} did not answer`);
    const { statusCode: status = 0, statusMessage: statusText = "" } = response;
    return {
      status,
      statusText,
      headers: response.headers as Answer["headers"],
      config,
      data: await textOf(response),
    };
  } catch (error) {
    sent.destroy();
    ended.throwIfAborted();
    const why = slow.aborted ? `no answer within ${REQUEST_TIMEOUT_MS / 1000} s` : messageOf(error);
    throw new Error(`${new URL(url).host}: ${why}`, { cause: error });
  }
}

async function textOf(response: AsyncIterable<Buffer>): Promise<string> {
  const parts: Buffer[] = [];
  let sizeBytes = 0;
  for await (const part of response) {
    sizeBytes += part.length;
    if (sizeBytes > LARGEST_ANSWER_BYTES) throw new Error("the answer is larger than 1 MiB");
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}

function note(
  { status, headers, data }: { readonly status: number; readonly headers: object; readonly data: string },
  refusals: Refusals,
): void {
  const { "retry-after": retryAfter = "" }: { readonly "retry-after"?: unknown } = headers;
  if (status === 429 || status === 503)
    refusals.retryAfterMs = parseRetryAfterMs(String(retryAfter), Date.now());
  refusals.type = /"type"\s*:\s*"([^"]{1,200})"/.exec(data)?.[1] ?? "";
}

/** Seconds, or a date (RFC 9110 §10.2.3); 0 where it is neither. */
export function parseRetryAfterMs(text: string, nowMs: number): number {
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const atMs = Date.parse(text);
  return Number.isNaN(atMs) ? 0 : Math.max(0, atMs - nowMs);
}

// An import of it by its name loads the runtime's fetch client: lib/node-http.ts.
const { Agent: HttpsAgent, request } = process.getBuiltinModule("node:https");

/** One connection for all requests of an order. */
class ConnectingAgent extends HttpsAgent {
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
