/** Signing in at a dashboard: a session stands for the secrets, so that a page need not keep them. */
import * as z from "zod";
import { CONTROLLER_OWNER, SVC_OWNER, type AccessControl } from "#core/access.ts";
import { ApiError } from "#core/errors.ts";
import { Secret } from "#api/auth.ts";
import { parseJson } from "#api/body.ts";
import { bearerOf, callerOf, CODE_NEEDED, standsFor } from "#api/credentials.ts";
import { CodeError, ShapeError, unauthorized } from "#api/errors.ts";
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

const codeBody = jsonObject({
  /** Six digits, of the authenticator app. */
  code: z.string().max(64).optional(),
  /** In its place, a session that a code has opened with the other secret. */
  session: z.string().max(256).optional(),
});

export function sessionRoutes(env: SignInEnv): readonly Route[] {
  const { sessions, codes } = env.access;
  const opened = (secrets: readonly Secret[]) => {
    const { token, lastsMs } = sessions.open(secrets.map(({ mark }) => codes.sessionMark(mark)));
    return { token, lasts_seconds: Math.floor(lastsMs / 1000) };
  };
  return [
    route({
      method: "POST",
      scope: "owner",
      guard: ownerGuard(env, true),
      path: "/api/svc/session",
      onlyReads: true,
      summary:
        "Sign in with the secret of the Controller or of the svc block; with svc.totp-file a code comes with it, once, and after ten wrong ones the answer is 429",
      rawBody: { type: "application/json", schema: codeBody },
      answer,
      async handle({ request, bytes }) {
        const { authorization } = request.headers;
        const given = secretsOf(env).filter((secret) => secret.opens(authorization));
        if (given.length === 0)
          throw new ApiError(403, "a session begins with a secret, not with another session");
        if (codes.isOn) await takeCode(env, bytes, request.raw.socket.remoteAddress ?? "this machine");
        return opened(given);
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
        return opened(secretsOf(env));
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

/** Throws `CodeError`, and `ApiError` 429 where too many were wrong. */
async function takeCode(env: SignInEnv, bytes: Uint8Array, from: string): Promise<void> {
  const read = codeBody.safeParse(bytes.length === 0 ? {} : parseJson(bytes));
  if (!read.success) throw new ShapeError(read.error);
  const { code = "", session = "" } = read.data;
  if (session !== "" && secretsOf(env).some((secret) => standsFor(session, secret, env.access))) return;
  if (code === "") throw new CodeError(CODE_NEEDED);
  const answered = await env.access.codes.take(code.replaceAll(/\s/g, ""), from);
  if (answered.kind === "wrong")
    throw new CodeError("the code is wrong; the clocks of this machine and of the phone must agree");
  if (answered.kind === "used") throw new CodeError("the code was used already; wait for the next one");
  if (answered.kind === "later")
    throw new ApiError(429, "too many wrong codes; no code is looked at for some minutes", {
      retryAfterSeconds: answered.afterSeconds,
    });
}

/** Either secret, or what stands for one. `byCode`: a secret is enough, because its code is asked for behind it. */
function ownerGuard(env: SignInEnv, byCode = false): Guard {
  return (request, reply) => {
    const { authorization } = request.headers;
    if (byCode && secretsOf(env).some((secret) => secret.opens(authorization))) return SVC_OWNER;
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
