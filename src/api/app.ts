/**
 * One application per transport. A request passes, in this order: cross-origin headers (a preflight ends here), the
 * Host allow-list, the credential of its route, the limits and shapes of `mount.ts`, the resource.
 */
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { CONTROLLER_OWNER, type AccessControl, type Caller } from "#core/access.ts";
import { ApiError, messageOf } from "#core/errors.ts";
import { Secret } from "./auth.ts";
import { callerOf, checkScope, standsFor } from "./credentials.ts";
import { controllerRoutes } from "./controller/index.ts";
import { Cors } from "./cors.ts";
import { answerTo, errorBody, forbidden, unauthorized, type ErrorAnswer } from "./errors.ts";
import { hostAllowList, hostOfOrigin, withPort } from "./hosts.ts";
import { mountRoutes } from "./mount.ts";
import type { Upgrades } from "./upgrade.ts";
import type { Transport, AppOptions, AppEnv } from "./app-env.ts";
import { itemAt } from "#lib/at.ts";

/** Names as long as a header line may be; the router's own default of 100 characters is shorter than real node names. */
const MAX_NAME_CHARACTERS = 16_384;

export async function buildApp(env: AppEnv): Promise<FastifyInstance> {
  const { options, transport, log, upgrades } = env;
  const cors = new Cors(options.cors);
  const app = fastify({
    logger: false,
    exposeHeadRoutes: false,
    ...(options.former === undefined ? {} : { rewriteUrl: formerUrl(options.former) }),
    routerOptions: { maxParamLength: MAX_NAME_CHARACTERS },
    frameworkErrors(_error, request, rawReply) {
      const reply = rawReply as unknown as FastifyReply; // hooks have not run for a path that cannot be decoded
      if (cors.apply(request, reply)) void reply.code(200).send();
      else void sendError(reply, answerTo(new ApiError(400, "the path is not UTF-8 in percent-encoding")));
    },
  });
  app.decorateRequest("declaredType", "");
  app.decorateRequest("caller");
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, _payload, done) => done(null));
  app.addHook("onRequest", async (request, reply) => {
    if (cors.apply(request, reply)) return reply.code(200).send();
    rejectAmbiguous(request);
    takeMediaType(request);
    return undefined;
  });
  app.addHook("onRequest", gatekeeper(options, transport, cors, upgrades));
  app.addHook("onResponse", async (request, reply) => {
    env.metrics.count(request.routeOptions.config.route ?? null, reply.statusCode, reply.elapsedTime);
  });
  app.setErrorHandler((error, request, reply) => {
    const answer = answerTo(error);
    // the pattern, because path and query may hold a token
    const what = `${request.method} ${request.routeOptions.url ?? "unknown path"}`;
    if (answer.internal) log.error(`controller: ${what}: ${describe(error)}`);
    return sendError(reply, answer);
  });
  app.setNotFoundHandler((_, reply) =>
    reply.code(404).type("text/plain; charset=utf-8").send("404 page not found\n"),
  );
  mountRoutes(app, await controllerRoutes(env), upgrades, options.access ?? null);
  await app.ready();
  return app;
}

/** What the client asks for besides goes on; the form that the old address stood for comes before it. */
function formerUrl(former: (path: string) => string | null) {
  return ({ url = "/" }: { readonly url?: string | undefined }): string => {
    const [path = "", query] = url.split("?", 2);
    const present = former(path);
    if (present === null) return url;
    return query === undefined || present.includes("?") ? present : `${present}?${query}`;
  };
}

/** Access is decided by the route that will answer, never by the text of the path. */
function gatekeeper(options: AppOptions, transport: Transport, cors: Cors, upgrades: Upgrades) {
  const secret = new Secret(options.secret);
  const origins = options.cors.allowOrigins.map(hostOfOrigin).filter((host) => host !== null);
  const isOurs = hostAllowList([...options.hosts, ...origins]);
  const access = options.access ?? null;
  const isWeb = transport.kind === "http" || transport.kind === "https"; // no browser reaches the others
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const { scope, guard, acts, stream } = request.routeOptions.config;
    request.caller = CONTROLLER_OWNER;
    if (guard === undefined && (scope === undefined || scope === "open")) return;
    if (guard !== undefined) reply.header("cache-control", "no-store"); // svc-admin-api §3: before any check
    // HTTP/1.0 may come without a Host; browsers always send one
    if (secret.isEmpty && isWeb && request.host !== "" && !isOurs(request.host)) throw forbidden();
    const isUpgrade = stream === true && upgrades.has(request.raw);
    if (isUpgrade && isForeign(request, (page) => cors.allows(page))) throw forbidden();
    if (secret.isEmpty && guard === undefined) {
      if (isWeb) refuseOtherPages(request, cors, acts === true);
      return;
    }
    const caller =
      guard === undefined ? controllerCaller(request, secret, isUpgrade, access) : guard(request, reply);
    if (caller === null) return; // the guard has answered
    checkScope(caller, scope);
    request.caller = caller;
  };
}

/** Throws `ApiError` 401. */
function controllerCaller(
  request: FastifyRequest,
  secret: Secret,
  isUpgrade: boolean,
  access: AccessControl | null,
): Caller {
  const { query } = request;
  const given = typeof query === "object" && query !== null && "token" in query ? query.token : null;
  const inQuery: unknown = Array.isArray(given) ? given[0] : given;
  // Browsers have no other place for it with a WebSocket. A token is refused there: addresses are written into logs.
  const isInQuery = isUpgrade && typeof inQuery === "string" && inQuery !== "";
  const isOwn =
    isInQuery &&
    ((secret.equals(inQuery) && access?.codes.isOn !== true) ||
      (access !== null && standsFor(inQuery, secret, access)));
  const inQueryCaller = isOwn ? CONTROLLER_OWNER : null;
  const caller = isInQuery ? inQueryCaller : callerOf(request, secret, CONTROLLER_OWNER, access);
  if (caller === null) throw unauthorized();
  return caller;
}

const OTHER_PAGES =
  "A page of another origin may not use the Controller without a secret: set secret, or list the page's origin in external-controller-cors.allow-origins";

/**
 * Without a secret, every page that any program of this machine opens could use the Controller. So a page of another
 * origin may not, unless its origin is listed; what is sent without an Origin (a form, an image) may at least do nothing.
 */
function refuseOtherPages(request: FastifyRequest, cors: Cors, acts: boolean): void {
  const { origin, "sec-fetch-site": site } = request.headers;
  const isSilent = origin === undefined && (site === "cross-site" || site === "same-site");
  const isForeignAct = acts && isSilent && !cors.trusts(null);
  if (isForeignAct || isForeign(request, (page) => cors.trusts(page))) throw new ApiError(403, OTHER_PAGES);
}

/** A page that may not read our answers may not open a WebSocket either; our own pages may. */
function isForeign({ headers, host }: FastifyRequest, admits: (origin: string) => boolean): boolean {
  const { origin } = headers;
  if (origin === undefined || admits(origin)) return false;
  const page = URL.parse(origin);
  if (page === null) return true;
  const scheme = page.protocol.slice(0, -1);
  return withPort(page.host, scheme) !== withPort(host, scheme);
}

/** Two hosts in one request: a proxy in front of us may have checked the other one. */
function rejectAmbiguous({ raw }: FastifyRequest): void {
  const { rawHeaders, headers, url = "" } = raw;
  const lines = rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === "host");
  const { host, ":authority": authority } = headers; // HTTP/2 has both (RFC 9113 §8.3.1)
  const named = authority ?? /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i.exec(url)?.[1] ?? host; // RFC 9112 §3.2.2
  if (lines.length > 1 || (host !== undefined && named !== host))
    throw new ApiError(400, "the request names two hosts");
}

/** Bodies are JSON whatever their Content-Type says, so the framework must not look at it; DoH still wants to know. */
function takeMediaType(request: FastifyRequest): void {
  const type = request.raw.headers["content-type"];
  if (type === undefined) return;
  request.declaredType = itemAt(type.split(";"), 0).trim().toLowerCase();
  delete request.raw.headers["content-type"];
}

function sendError(reply: FastifyReply, answer: ErrorAnswer): FastifyReply {
  const { retryAfterSeconds = null } = answer;
  if (retryAfterSeconds !== null) reply.header("retry-after", String(retryAfterSeconds));
  return reply
    .code(answer.status)
    .type("application/json")
    .send(Buffer.from(errorBody(answer)));
}

function describe(error: unknown): string {
  const cause = error instanceof Error && error.cause !== undefined ? ` (${messageOf(error.cause)})` : "";
  return `${messageOf(error)}${cause}`;
}
