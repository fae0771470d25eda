/**
 * Registers routes with the framework: every method of a known path is answered (405 for undeclared ones), inputs are
 * checked once.
 */
import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteHandlerMethod } from "fastify";
import type { z } from "zod";
import type { AccessControl, Caller, RouteScope } from "#core/access.ts";
import { Slices } from "#core/slices.ts";
import { AuditTrail, isAudited } from "./audit-trail.ts";
import { MAX_BODY_BYTES, parseJson, readBody } from "./body.ts";
import { ShapeError } from "./errors.ts";
import { isLong, jsonChunks } from "./long-json.ts";
import { JsonText, type Call, type Guard, type Route } from "./route.ts";
import type { Upgrades } from "./upgrade.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** Absent on answers that reveal nothing: 404 and 405. */
    scope?: RouteScope;
    guard?: Guard;
    stream?: boolean;
    acts?: boolean;
    /** The declaration that this route was made from. */
    route?: Route;
  }
  interface FastifyRequest {
    declaredType: string;
    /** Set before any route is served. */
    caller: Caller;
  }
}

/** One for all: each made anew would collect a stack, at the end of every request. */
const GONE = new DOMException("the request is over", "AbortError");

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"] as const;

/** `access` null: changes leave no entry. */
export function mountRoutes(
  app: FastifyInstance,
  routes: readonly Route[],
  upgrades: Upgrades,
  access: AccessControl | null = null,
): void {
  const env: ServeEnv = { upgrades, access, slices: new Slices() };
  const byPath = Map.groupBy(routes.flatMap(withSlash), ([path]) => path);
  for (const [path, variants] of byPath) {
    const here = variants.map(([, route]) => route);
    for (const route of here) {
      const { method, scope, guard, stream = false } = route;
      const acts = route.acts ?? (method !== "GET" && method !== "HEAD");
      const handler: RouteHandlerMethod = (request, reply) => serve(route, env, request, reply);
      const config = { scope, stream, acts, route, ...(guard === undefined ? {} : { guard }) };
      app.route({ method, url: path, config, handler });
    }
    const allowed: string[] = here.map(({ method }) => method);
    const others = METHODS.filter((method) => !allowed.includes(method));
    // a guard comes before everything else: where nothing is managed, a wrong method finds nothing either
    const guard = here.map((route) => route.guard).find((own) => own !== undefined);
    const config = guard === undefined ? {} : { guard };
    app.route({ method: others, url: path, config, handler: (_, reply) => refuseMethod(reply, allowed) });
  }
}

function withSlash(route: Route): readonly (readonly [string, Route])[] {
  const own = [route.path, route] as const;
  return route.slash === true ? [own, [`${route.path}/`, route]] : [own];
}

function refuseMethod(reply: FastifyReply, allowed: readonly string[]): FastifyReply {
  const allow = [...allowed, "OPTIONS"].join(", ");
  return reply
    .code(405)
    .header("allow", allow)
    .type("text/plain; charset=utf-8")
    .send("405 method not allowed\n");
}

interface ServeEnv {
  readonly upgrades: Upgrades;
  readonly access: AccessControl | null;
  /** Of all long answers together. */
  readonly slices: Slices;
}

async function serve(
  route: Route,
  { upgrades, access, slices }: ServeEnv,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const params = request.params as Record<string, string>;
  route.prepare?.(params);
  const gone = new AbortController();
  reply.raw.once("close", () => gone.abort(GONE)); // before anything is waited for: it comes once
  const trail = access !== null && isAudited(route) ? new AuditTrail(access, route, request, reply) : null;
  const bytes = await bodyOf(route, request, reply);
  const call: Call = {
    params,
    query: shaped(route.query, request.query),
    body: route.body === undefined ? undefined : shaped(route.body, parseJson(bytes)),
    bytes,
    mediaType: request.declaredType,
    upgrade: upgrades.get(request.raw) ?? null,
    caller: request.caller,
    note: (what) => trail?.note(what),
    signal: gone.signal,
    request,
    reply,
  };
  const result = await route.handle(call);
  await trail?.write(); // before the answer: what was acknowledged has its entry
  if (reply.sent) return reply;
  if (result === undefined) return reply.code(204).send();
  reply.code(route.answer.status).type("application/json"); // of text it would say a charset
  if (isLong(result)) return sendLong(result, slices, reply);
  return reply.send(Buffer.from(result instanceof JsonText ? result.text : JSON.stringify(result)));
}

/** What fits into one chunk is sent with its length, like any other answer. */
async function sendLong(result: unknown, slices: Slices, reply: FastifyReply): Promise<FastifyReply> {
  const chunks = jsonChunks(result, slices);
  const first = await chunks.next();
  const second = await chunks.next();
  if (first.done === true || second.done === true) return reply.send(first.value ?? Buffer.alloc(0));
  return reply.send(
    Readable.from(
      (async function* () {
        yield first.value;
        yield second.value;
        yield* chunks;
      })(),
    ),
  );
}

function bodyOf(route: Route, request: FastifyRequest, reply: FastifyReply): Promise<Uint8Array> {
  if (route.method === "GET" || route.method === "HEAD") return Promise.resolve(new Uint8Array());
  const tooLarge = route.tooLarge ?? "the request body exceeds 1 MiB";
  return readBody(request.raw, reply.raw, route.maxBodyBytes ?? MAX_BODY_BYTES, tooLarge);
}

function shaped(schema: z.ZodType | undefined, value: unknown): unknown {
  if (schema === undefined) return undefined;
  const result = schema.safeParse(value);
  if (!result.success) throw new ShapeError(result.error);
  return result.data;
}
