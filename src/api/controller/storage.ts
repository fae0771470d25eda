import type { StorageControl } from "#core/control.ts";
import { anyJson } from "#api/answer-shapes.ts";
import { decodeText, parseJson } from "#api/body.ts";
import { notFound } from "#api/errors.ts";
import { DONE, JsonText, route, type Params, type Route } from "#api/route.ts";

export function storageRoutes(storage: StorageControl): readonly Route[] {
  const common = {
    path: "/storage/:key" as const,
    prepare({ key }: Params<"/storage/:key">) {
      if (key === "") throw notFound();
    },
  };
  return [
    route({
      ...common,
      method: "GET",
      scope: "operate",
      summary: "What a dashboard has stored",
      answer: {
        status: 200,
        description: "The JSON as it was stored; null where there is none",
        schema: anyJson(),
      },
      handle: ({ params }) => new JsonText(storage.get(params.key) ?? "null"),
    }),
    route({
      ...common,
      method: "PUT",
      scope: "operate",
      tooLarge: "payload exceeds 1MB limit",
      summary: "Store any JSON",
      rawBody: { type: "application/json", schema: anyJson() },
      answer: DONE,
      async handle({ params, bytes }) {
        parseJson(bytes); // stored as written: numbers of any length and the order of keys survive
        await storage.put(params.key, decodeText(bytes));
      },
    }),
    route({
      ...common,
      method: "DELETE",
      scope: "operate",
      summary: "Forget it; an unknown key is no error",
      answer: DONE,
      handle: ({ params }) => storage.delete(params.key),
    }),
  ];
}
