/** Which caller a request stands for, and what the caller may do. */
import type { FastifyRequest } from "fastify";
import { allows, type AccessControl, type Caller, type RouteScope } from "#core/access.ts";
import { ApiError } from "#core/errors.ts";
import type { Secret } from "./auth.ts";
import { CodeError } from "./errors.ts";

/**
 * The owner of the secret, by it or by what stands for it, or the holder of a token; null: neither. Throws `CodeError` for
 * the secret itself where a code is to come with it.
 */
export function callerOf(
  request: FastifyRequest,
  secret: Secret,
  owner: Caller,
  access: AccessControl | null,
): Caller | null {
  const { authorization } = request.headers;
  if (secret.opens(authorization)) {
    if (access?.codes.isOn !== true) return owner;
    throw new CodeError(CODE_NEEDED);
  }
  const token = bearerOf(authorization);
  if (token !== null && access !== null && standsFor(token, secret, access)) return owner;
  const grant = token === null ? null : (access?.tokenOf(token) ?? null);
  return grant === null ? null : { name: grant.name, token: grant };
}

export const CODE_NEEDED = "a code is needed: POST /api/svc/session with it, or use a token (svc.totp-file)";

/** A session, or what a command of this machine sends. */
export function standsFor(token: string, { mark }: Secret, { sessions, codes }: AccessControl): boolean {
  return sessions.opens(token, codes.sessionMark(mark)) || codes.opensAsCommand(token, mark);
}

/**
 * Throws `ApiError` 403 where a token does not open the route. `scope` undefined: nothing is behind it that any scope would
 * be needed for. The owner may everything.
 */
export function checkScope({ token }: Caller, scope: RouteScope | undefined): void {
  if (token === null || scope === undefined || allows(token.scopes, scope)) return;
  if (scope === "owner") throw new ApiError(403, "no token opens this, only the secret of the svc block");
  throw new ApiError(403, `the token needs the scope ${scope}`);
}

export function bearerOf(authorization: string | undefined): string | null {
  return /^bearer (.*)$/is.exec(authorization ?? "")?.[1] ?? null;
}
