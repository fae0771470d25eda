/** Access to the admin API: checks in the order of its manual, before anything of the request is used. */
import { isIPv4 } from "node:net";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Transport } from "#api/app-env.ts";
import { Secret } from "#api/auth.ts";
import { forbidden, unauthorized } from "#api/errors.ts";
import { withPort } from "#api/hosts.ts";
import type { Guard } from "#api/route.ts";
import { ApiError } from "#core/errors.ts";
import { withoutFolders } from "#core/places.ts";
import type { UsersControl } from "#core/users.ts";
import { itemAt } from "#lib/at.ts";

/**
 * 404 without a manager, 403 for another origin, 401 without the manager's own secret; with it 500 where there is no
 * manager because the state file cannot be opened.
 */
export function adminGuard(users: UsersControl, transport: Transport): Guard {
  const secretOf = rememberingSecret();
  return (request: FastifyRequest, reply: FastifyReply): void => {
    const { admin, waiting } = users;
    const keeper = admin ?? waiting;
    if (keeper === null) return reply.callNotFound();
    if (!isSameOrigin(request, transport)) throw forbidden();
    if (secretOf(keeper).opens(request.headers.authorization)) {
      if (admin !== null || waiting === null) return;
      const reason = withoutFolders(waiting.reason, waiting.store);
      throw new ApiError(500, `users cannot be managed at present, it is tried again: ${reason}`);
    }
    reply.header("www-authenticate", "Bearer");
    throw unauthorized();
  };
}

/** Hashing the secret once is enough, as long as it stays. */
function rememberingSecret(): (keeper: { readonly secret: string }) => Secret {
  let known = "";
  let secret = new Secret("");
  return (keeper) => {
    if (keeper.secret !== known) {
      known = keeper.secret;
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
