/** Signing in at a dashboard: a session stands for the secrets, so that a page need not keep them. */
import * as z from "zod";
import { CONTROLLER_OWNER, SVC_OWNER, type AccessControl } from "#core/access.ts";
import { ApiError } from "#core/errors.ts";
import { Secret } from "#api/auth.ts";
import { bearerOf, callerOf } from "#api/credentials.ts";
import { unauthorized } from "#api/errors.ts";
import { DONE, route, type Answer, type Guard, type Route } from "#api/route.ts";
import { jsonObject } from "#api/shapes.ts";

export interface SignInEnv {
  readonly access: AccessControl;
  /** Of the Controller; "": it has none. */
  readonly secret: string;
  /** Null: there is no `svc` block. */
  svcSecret(): string | null;
}

const answer: Answer = {
  status: 201,
  description: "A credential like the secrets that it stands for; kept in memory only",
  schema: z.object({ token: z.string(), lasts_seconds: z.int() }),
};

export function sessionRoutes(env: SignInEnv): readonly Route[] {
  const { sessions } = env.access;
  const opened = (marks: readonly string[]) => {
    const { token, lastsMs } = sessions.open(marks);
    return { token, lasts_seconds: Math.floor(lastsMs / 1000) };
  };
  return [
    route({
      method: "POST",
      scope: "owner",
      guard: ownerGuard(env),
      path: "/api/svc/session",
      onlyReads: true,
      summary: "Sign in with the secret of the Controller or of the svc block",
      answer,
      handle({ request }) {
        const { authorization } = request.headers;
        const given = secretsOf(env).filter((secret) => secret.opens(authorization));
        if (given.length === 0)
          throw new ApiError(403, "a session begins with a secret, not with another session");
        return opened(given.map(({ mark }) => mark));
      },
    }),
    route({
      method: "POST",
      scope: "open",
      path: "/api/svc/session/code",
      onlyReads: true,
      summary: "Sign in with the code of the link that was printed at the start; it opens once",
      body: jsonObject({ code: z.string().min(1).max(128) }),
      answer,
      handle({ body }) {
        if (!sessions.takeCode(body.code))
          throw new ApiError(400, "this code was used before, has expired or is unknown");
        return opened(secretsOf(env).map(({ mark }) => mark));
      },
    }),
    route({
      method: "DELETE",
      scope: "owner",
      guard: ownerGuard(env),
      path: "/api/svc/session",
      onlyReads: true,
      summary: "Sign out: the session that is sent opens nothing any more",
      answer: DONE,
      handle({ request }) {
        sessions.close(bearerOf(request.headers.authorization) ?? "");
      },
    }),
  ];
}

function secretsOf({ secret, svcSecret }: SignInEnv): readonly Secret[] {
  return [secret, svcSecret() ?? ""].map((text) => new Secret(text)).filter(({ isEmpty }) => !isEmpty);
}

/** Either secret, or what stands for one. */
function ownerGuard(env: SignInEnv): Guard {
  return (request, reply) => {
    const own = new Secret(env.secret);
    const svc = new Secret(env.svcSecret() ?? "");
    const caller =
      (own.isEmpty ? null : callerOf(request, own, CONTROLLER_OWNER, env.access)) ??
      (svc.isEmpty ? null : callerOf(request, svc, SVC_OWNER, env.access));
    if (caller !== null) return caller;
    reply.header("www-authenticate", "Bearer");
    throw unauthorized();
  };
}
