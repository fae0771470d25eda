/** `/sub/svc/{token}`: the share link of one managed user. The token is all that is asked for, and a wrong one learns nothing. */
import type { FastifyReply } from "fastify";
import type { UsersControl } from "#core/users.ts";
import { route, type Route } from "./route.ts";

export function subscriptionRoutes(users: UsersControl): readonly Route[] {
  return (["GET", "HEAD"] as const).map((method) =>
    route({
      method,
      path: "/sub/svc/:token",
      access: "open",
      summary: "One proxy share link in base64",
      answer: { status: 200, type: "text/plain", description: "The link; 404 for whoever may have none" },
      handle({ params, reply }) {
        const link = users.admin?.subscription(params.token as string)?.link ?? null;
        return link === null
          ? sendText(reply, 404, "404 page not found\n")
          : sendText(reply, 200, Buffer.from(link).toString("base64"));
      },
    }),
  );
}

function sendText(reply: FastifyReply, status: 200 | 404, text: string): FastifyReply {
  return reply.code(status).header("cache-control", "no-store").type("text/plain; charset=utf-8").send(text);
}
