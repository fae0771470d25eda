import * as z from "zod";
import type { UpdatesControl } from "#core/control.ts";
import { route, type Route } from "#api/route.ts";
import { queryOf } from "#api/shapes.ts";

const faults = {
  500: "It is not configured, or the release folder gives no answer that is signed by its key",
};

/** Of the program itself: docs/update.md. */
export function updateRoutes(updates: UpdatesControl): readonly Route[] {
  return [
    route({
      method: "GET",
      scope: "read",
      path: "/api/svc/update",
      summary: "The version that runs, and whether it can be updated from here",
      answer: {
        status: 200,
        description: "`configured`: there is a release folder to ask",
        schema: z.object({ version: z.string(), configured: z.boolean(), by_controller: z.boolean() }),
      },
      handle() {
        const { version, isConfigured, byController } = updates.view();
        return { version, configured: isConfigured, by_controller: byController };
      },
    }),
    route({
      method: "POST",
      scope: "operate",
      path: "/api/svc/update/check",
      onlyReads: true,
      summary: "Ask the release folder which version it has",
      answer: {
        status: 200,
        description: "`age`: what it is to the one that runs; `unknown`: it cannot be told to be newer",
        schema: z.object({ version: z.string(), age: z.enum(["older", "same", "newer", "unknown"]) }),
      },
      faults,
      handle: () => updates.look(),
    }),
    route({
      method: "POST",
      scope: "owner",
      path: "/upgrade",
      summary: "Fetch a newer version of the program; it has taken over when the answer comes",
      answer: { status: 200, description: "It serves", schema: z.object({ status: z.literal("ok") }) },
      faults: {
        500: "It is not configured, none is newer, or it did not take over; nothing has changed then",
      },
      query: queryOf({ channel: z.string().default(""), force: z.string().default("") }),
      async handle({ query, note }) {
        const version = await updates.update({ channel: query.channel });
        note({ action: "program.update", target: version });
        return { status: "ok" as const };
      },
    }),
  ];
}
