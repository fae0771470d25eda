import * as z from "zod";
import type { Control } from "#core/control.ts";
import { route, type Route } from "#api/route.ts";

export function identityRoutes({ build }: Control): readonly Route[] {
  return [
    route({
      method: "GET",
      scope: "read",
      path: "/",
      summary: "Greeting",
      answer: { status: 200, description: "Who is there", schema: z.object({ hello: z.string() }) },
      handle: () => ({ hello: "weir" }),
    }),
    route({
      method: "GET",
      scope: "read",
      path: "/version",
      summary: "Version of the build",
      answer: {
        status: 200,
        description: "`meta` makes dashboards show the extended features",
        schema: z.object({ meta: z.literal(true), version: z.string().min(1) }),
      },
      handle: () => ({ meta: true, version: build.version }),
    }),
  ];
}
