import * as z from "zod";
import { unixMs } from "#api/answer-shapes.ts";
import { DONE, route, type Route } from "#api/route.ts";
import { jsonObject } from "#api/shapes.ts";
import { SCOPES } from "#core/access.ts";
import type { JournalControl, TokenView } from "#core/journal.ts";

const tokenShape = z
  .object({
    id: z.string(),
    name: z.string(),
    scopes: z.array(z.enum(SCOPES)),
    listener: z.string().optional(),
    created_at: unixMs(),
    expires_at: unixMs().optional(),
    used_at: unixMs().optional(),
  })
  .meta({ id: "Token" });

const draft = jsonObject({
  name: z.string(),
  scopes: z.array(z.enum(SCOPES)),
  listener: z.string().min(1).optional().meta({ description: "Only its users; for the scope users alone" }),
  expires_at: z.int().positive().optional().meta({ description: "Unix ms; absent: never" }),
});

const faults = { 500: "It could not be written; everything is as before" };

export function tokenRoutes(journal: JournalControl): readonly Route[] {
  const path = "/api/svc/tokens";
  return [
    route({
      method: "GET",
      scope: "owner",
      path,
      summary: "The tokens, without what opens anything",
      answer: { status: 200, description: "By name", schema: z.object({ tokens: z.array(tokenShape) }) },
      handle: () => ({ tokens: journal.tokens().map(tokenJson) }),
    }),
    route({
      method: "POST",
      scope: "owner",
      path,
      summary: "Make a token",
      body: draft,
      answer: {
        status: 201,
        description: "The token, which is shown here and never again",
        schema: tokenShape.extend({ token: z.string() }),
      },
      faults,
      async handle({ body, note }) {
        const { name, scopes, listener = null, expires_at: expiresAtMs = null } = body;
        const { view, token } = await journal.createToken({ name, scopes, listener, expiresAtMs });
        note({ action: "token.create", target: view.id, after: tokenJson(view) });
        return { ...tokenJson(view), token };
      },
    }),
    route({
      method: "DELETE",
      scope: "owner",
      path: "/api/svc/tokens/:id",
      summary: "Revoke a token; streams that it opened end",
      answer: DONE,
      faults,
      async handle({ params, note }) {
        const view = await journal.revokeToken(params.id);
        note({ action: "token.revoke", before: tokenJson(view) });
      },
    }),
  ];
}

function tokenJson({ id, name, scopes, listener, createdAtMs, expiresAtMs, usedAtMs }: TokenView) {
  return {
    id,
    name,
    scopes,
    ...(listener === null ? {} : { listener }),
    created_at: createdAtMs,
    ...(expiresAtMs === null ? {} : { expires_at: expiresAtMs }),
    ...(usedAtMs === null ? {} : { used_at: usedAtMs }),
  };
}
