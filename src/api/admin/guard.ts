/** Access to the admin API: checks in the order of its manual, before anything of the request is used. */
import { isIPv4 } from "node:net";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Transport } from "#api/app-env.ts";
import { Secret } from "#api/auth.ts";
import { callerOf, checkScope } from "#api/credentials.ts";
import { forbidden, unauthorized } from "#api/errors.ts";
import { withPort } from "#api/hosts.ts";
import type { Guard } from "#api/route.ts";
import { SVC_OWNER, type AccessControl, type Caller } from "#core/access.ts";
import { ApiError } from "#core/errors.ts";
import { withoutFolders } from "#core/places.ts";
import type { UsersControl } from "#core/users.ts";
import { itemAt } from "#lib/at.ts";

/**
 * 404 without a manager, 403 for another origin, 401 without the manager's own secret or a token; with it 500 where there
 * is no manager because the state file cannot be opened.
 */
export function adminGuard(users: UsersControl, access: AccessControl | null, transport: Transport): Guard {
  const secretOf = (): string | null => (users.admin ?? users.waiting)?.secret ?? null;
  const guard = svcGuard(secretOf, access, transport);
  return (request, reply) => {
    const caller = guard(request, reply);
    const { admin, waiting } = users;
    if (caller === null || admin !== null || waiting === null) return caller;
    checkScope(caller, request.routeOptions.config.scope);
    const reason = withoutFolders(waiting.reason, waiting.store);
    throw new ApiError(500, `users cannot be managed at present, it is tried again: ${reason}`);
  };
}

/** The same for everything that `svc.secret` opens; null: there is no such block, and so no such path. */
export function svcGuard(
  secretOf: () => string | null,
  access: AccessControl | null,
  transport: Transport,
): Guard {
  const remembered = rememberingSecret();
  return (request: FastifyRequest, reply: FastifyReply): Caller | null => {
    const secret = secretOf();
    if (secret === null) {
      reply.callNotFound();
      return null;
    }
    if (!isSameOrigin(request, transport)) throw forbidden();
    const caller = callerOf(request, remembered(secret), SVC_OWNER, access);
    if (caller !== null) return caller;
    reply.header("www-authenticate", "Bearer");
    throw unauthorized();
  };
}

/** Hashing the secret once is enough, as long as it stays. */
function rememberingSecret(): (text: string) => Secret {
  let known = "";
  let secret = new Secret("");
  return (text) => {
    if (text !== known) {
      known = text;
      secret = new Secret(known);
    }
    return secret;
  };
}

/**
 * No page of another origin gets through. Programs send no Origin. `X-Forwarded-Host` does not count, so a reverse proxy
 * has to keep `Host`.
 */
function isSameOrigin(request: FastifyRequest, transport: Transport): boolean {
  const { origin } = request.headers;
  if (request.headers["sec-fetch-site"] === "cross-site") return false;
  if (origin === undefined) return true;
  const match = /^([a-z][a-z0-9+.-]*):\/\/([^/?#@]+)$/i.exec(origin);
  if (match === null) return false;
  const scheme = itemAt(match, 1).toLowerCase();
  if (scheme !== expectedScheme(request, transport)) return false;
  return withPort(itemAt(match, 2), scheme) === withPort(request.host, scheme);
}

function expectedScheme(request: FastifyRequest, { kind }: Transport): string {
  if (kind === "https") return "https";
  const forwarded = itemAt(String(request.headers["x-forwarded-proto"] ?? "").split(",", 1), 0);
  const isNear = kind === "unix" || kind === "pipe" || isLoopback(request.raw.socket.remoteAddress ?? "");
  return isNear && (forwarded === "http" || forwarded === "https") ? forwarded : "http";
}

function isLoopback(address: string): boolean {
  const plain = address.replace(/^::ffff:/i, "");
  return plain === "::1" || (isIPv4(plain) && plain.startsWith("127."));
}
