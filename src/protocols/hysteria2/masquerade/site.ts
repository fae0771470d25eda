/** Another web site, whose answers visitors get. */
import { type IncomingMessage, request as httpRequest } from "#lib/node-http.ts";
import type { Duplex } from "node:stream";
import { connect as connectTls } from "node:tls";
import type { Dialer } from "#core/outbound.ts";
import { toDestination } from "#net/address/ip.ts";
import { type ConnectionEnds, describe } from "#net/listen/accept.ts";
import type { Field } from "#transport/http3/qpack.ts";
import type { Http3Answer, Http3Request } from "#transport/http3/server.ts";
import { bare } from "./answers.ts";

const TIMEOUT_MS = 30_000;
const DIAL_TIMEOUT_MS = 10_000;
/** They are about one connection (RFC 9110 §7.6.1), and HTTP/3 has none of them. */
const OF_A_CONNECTION: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
  "te",
]);

type Visit = (request: Http3Request, ends: ConnectionEnds) => Promise<Http3Answer>;

export function openSite(site: URL, dialer: Dialer): Visit {
  return async (request, ends) => {
    try {
      return await ask(site, request, await dial(site, ends, dialer));
    } catch {
      return bare(502); // the site is not there
    }
  };
}

/** Throws `DialError`. */
async function dial(site: URL, ends: ConnectionEnds, dialer: Dialer): Promise<Duplex> {
  const isTls = site.protocol === "https:";
  const host = site.hostname.replace(/^\[(.*)\]$/, "$1");
  const destination = toDestination(host, Number(site.port) || (isTls ? 443 : 80));
  const asked = { network: "tcp", type: "Inner", user: null, destination } as const;
  // With the visitor's own end, so that a site that is this listener itself comes to its end.
  const metadata = describe({ name: "", ruleList: null, target: null }, ends, asked);
  const stream = await dialer.connect(destination, {
    signal: AbortSignal.timeout(DIAL_TIMEOUT_MS),
    metadata,
  });
  stream.on("error", () => {});
  if (!isTls) return stream;
  return connectTls({
    socket: stream,
    ALPNProtocols: ["http/1.1"],
    ...(destination.host === null ? {} : { servername: host }),
  });
}

/** Throws where the site does not answer. */
function ask(site: URL, request: Http3Request, stream: Duplex): Promise<Http3Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Http3Answer>();
  const prefix = site.pathname.replace(/\/$/, "");
  const asked = httpRequest({
    createConnection: () => stream,
    method: request.method,
    path: `${prefix}${request.path}`,
    setHost: false,
    headers: [["host", request.authority], ...passed(request.fields)].flat(),
    timeout: TIMEOUT_MS,
  });
  asked.on("timeout", () => asked.destroy(new Error("the site is silent")));
  asked.on("error", (error) => {
    stream.destroy();
    reject(error);
  });
  asked.on("response", (answer: IncomingMessage) => {
    answer.on("error", () => {});
    answer.on("close", () => stream.destroy());
    resolve({ status: answer.statusCode ?? 502, fields: passed(pairs(answer.rawHeaders)), body: answer });
  });
  request.body.on("error", (error) => asked.destroy(error));
  request.body.pipe(asked);
  return promise;
}

function passed(fields: readonly Field[]): Field[] {
  const kept = fields.map(([name, value]): Field => [name.toLowerCase(), value]);
  return kept.filter(([name]) => name !== "host" && !OF_A_CONNECTION.has(name));
}

function pairs(raw: readonly string[]): Field[] {
  return raw.flatMap((name, at): Field[] => (at % 2 === 0 ? [[name, raw[at + 1] ?? ""]] : []));
}
