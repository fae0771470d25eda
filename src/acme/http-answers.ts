/** HTTP-01 (RFC 8555 §8.3): a small web server that is there while names are validated, and knows nothing but that. */
import { once } from "node:events";
import { ConfigError, messageOf } from "#core/errors.ts";
import { createServer } from "#lib/node-http.ts";

const PREFIX = "/.well-known/acme-challenge/";
/** Authorities ask from several places, each once or twice; connections beyond that are closed. */
const MOST_CONNECTIONS = 64;
const TIMEOUT_MS = 10_000;

export interface HttpAnswers extends AsyncDisposable {
  add(token: string, keyAuthorization: string): void;
}

/** Throws `ConfigError` where it cannot listen. */
export async function openHttpAnswers({
  host,
  port,
}: {
  readonly host: string;
  readonly port: number;
}): Promise<HttpAnswers> {
  const answers = new Map<string, string>();
  const server = createServer(
    { requestTimeout: TIMEOUT_MS, headersTimeout: TIMEOUT_MS, connectionsCheckingInterval: 1000 },
    (request, response) => {
      const { url = "", method = "" } = request;
      const answer = url.startsWith(PREFIX) ? answers.get(url.slice(PREFIX.length)) : undefined;
      const isAsked = answer !== undefined && (method === "GET" || method === "HEAD");
      response.writeHead(isAsked ? 200 : 404, {
        "content-type": "application/octet-stream",
        connection: "close",
      });
      response.end(isAsked ? answer : "");
    },
  );
  server.maxConnections = MOST_CONNECTIONS;
  server.on("clientError", (_, socket) => socket.destroy());
  try {
    server.listen({ port, ...(host === "" ? {} : { host }) });
    await once(server, "listening");
  } catch (cause) {
    throw new ConfigError(`acme.listen: ${host}:${port} cannot be listened on: ${messageOf(cause)}`, {
      cause,
    });
  }
  return {
    add: (token, keyAuthorization) => void answers.set(token, keyAuthorization),
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
