import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { Agent, type ClientRequest, type IncomingMessage, request as httpRequest } from "#lib/node-http.ts";
import { asDialError, DialError, ProtocolError, asError } from "#core/errors.ts";
import type { DialContext } from "#core/outbound.ts";
import { MessagePair } from "#transport/message-pair.ts";
import type { HttpClient, HttpRequest } from "#transport/http-client.ts";
import type { Secured } from "#transport/security.ts";

/** A connection without a request is kept so long for the next one. */
const IDLE_MS = 30_000;
/** Idle connections; one more is closed. */
const MAX_IDLE = 8;

/**
 * A streaming request is the last one of its connection, and the request header says so: servers written in Go read a
 * request's body to its end, or 256 KiB of it, before they answer, unless the connection closes after it.
 */
const LAST = { connection: "close" };

type Dial = (context: DialContext) => Promise<Secured>;

/** HTTP/1.1 connections to one server: each carries one exchange at a time. */
export class Http1Pool implements HttpClient {
  readonly #agent: DialAgent;

  constructor(dial: Dial) {
    this.#agent = new DialAgent(dial);
  }

  open(request: HttpRequest, context: DialContext): Promise<Duplex> {
    const { promise, resolve, reject } = Promise.withResolvers<Duplex>();
    const { signal } = context;
    if (signal.aborted) throw new DialError("aborted", "aborted before the request was sent");
    const sent = this.#send(request, context);
    const pair = new MessagePair(sent, null);
    const onAbort = () =>
      settle(new DialError("aborted", "aborted while the HTTP/1.1 connection was opened"));
    const settle = (failure: Error | null) => {
      signal.removeEventListener("abort", onAbort);
      pair.off("error", settle);
      if (failure === null) return resolve(pair);
      pair.destroy();
      reject(asDialError(failure, "HTTP/1.1"));
    };
    signal.addEventListener("abort", onAbort, { once: true });
    pair.on("error", () => {}).on("error", settle);
    sent.once("socket", () => settle(null)); // the answer is not awaited: it may come with the first bytes
    sent.on("response", (answer: IncomingMessage) => {
      if (answer.statusCode === 200) return pair.adopt(answer);
      answer.destroy();
      pair.destroy(new ProtocolError(`the server answered with status ${answer.statusCode}`));
    });
    sent.on("upgrade", (_answer, socket: Duplex) => socket.destroy());
    return promise;
  }

  /** Ends idle connections; busy ones end with their last exchange. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#agent.retire();
  }

  #send({ method, authority, path, headers, body }: HttpRequest, context: DialContext): ClientRequest {
    const sent = httpRequest({
      agent: this.#agent,
      host: "transport.invalid", // never resolved: the agent dials
      method,
      path,
      setHost: false,
      headers: {
        host: authority,
        ...headers,
        ...(body === "stream" ? LAST : body === null ? {} : { "content-length": body.length }),
      },
      ...({ context } satisfies Contextual),
    });
    if (body === "stream") sent.flushHeaders();
    else sent.end(body ?? undefined);
    return sent;
  }
}

/** Travels through the agent's options to its `createConnection`. */
interface Contextual {
  readonly context: DialContext;
}

type Created = (error: Error | null, stream?: Duplex) => void;

class DialAgent extends Agent {
  readonly #dial: Dial;
  readonly #timers = new Map<unknown, NodeJS.Timeout>();
  #retired = false;

  constructor(dial: Dial) {
    super({ keepAlive: true, maxFreeSockets: MAX_IDLE });
    this.#dial = dial;
  }

  override createConnection(
    options: object,
    done?: (error: Error | null, stream: Duplex) => void,
  ): undefined {
    void this.#connect((options as Contextual).context, done as Created);
  }

  async #connect(context: DialContext, done: Created): Promise<void> {
    try {
      const { stream } = await this.#dial(context);
      stream.on("error", () => stream.destroy()).on("close", () => this.#stop(stream));
      // The stream below allows half-close, but a peer that ended its side of an HTTP/1.1 connection sends no further
      // request.
      stream.on("end", () => stream.destroy());
      done(null, stream);
    } catch (error) {
      done(asError(error));
    }
  }

  /** Only sockets are kept (TLS is one over anything): the agent asks of them what other streams do not have. */
  override keepSocketAlive(stream: Duplex): boolean {
    if (this.#retired || !(stream instanceof Socket)) return false;
    const timer = setTimeout(() => stream.destroy(), IDLE_MS).unref();
    this.#timers.set(stream, timer);
    return true;
  }

  override reuseSocket(stream: Duplex, request: ClientRequest): void {
    this.#stop(stream);
    super.reuseSocket(stream, request);
  }

  retire(): void {
    this.#retired = true;
    for (const streams of Object.values(this.freeSockets))
      for (const stream of streams ?? []) stream.destroy();
  }

  #stop(stream: Duplex): void {
    clearTimeout(this.#timers.get(stream));
    this.#timers.delete(stream);
  }
}
