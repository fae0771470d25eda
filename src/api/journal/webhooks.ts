import * as z from "zod";
import { amount, anyJson, unixMs } from "#api/answer-shapes.ts";
import { DONE, route, type Route } from "#api/route.ts";
import { EVENT_TYPES, type DeadLetterView, type WebhookView } from "#core/events.ts";
import type { JournalControl } from "#core/journal.ts";

const webhookShape = z
  .object({
    name: z.string(),
    origin: z.string(),
    events: z.array(z.string()),
    pending: amount(),
    dead: amount(),
    failures: amount(),
    last_error: z.string().optional(),
    delivered_at: unixMs().optional(),
  })
  .meta({ id: "Webhook" });

const letterShape = z
  .object({
    seq: z.int().positive(),
    type: z.enum(EVENT_TYPES),
    subject: z.string(),
    at: unixMs(),
    data: z.record(z.string(), anyJson()),
    attempts: amount(),
    error: z.string(),
  })
  .meta({ id: "DeadLetter" });

const ONE = "/api/svc/webhooks/:name";

export function webhookRoutes(journal: JournalControl): readonly Route[] {
  const { webhooks } = journal;
  const resent = {
    status: 200,
    description: "How many are tried again",
    schema: z.object({ resent: amount() }),
  } as const;
  return [
    route({
      method: "GET",
      scope: "admin",
      path: "/api/svc/webhooks",
      summary: "Webhooks, and how their deliveries go",
      answer: {
        status: 200,
        description: "In the order of the file",
        schema: z.object({ webhooks: z.array(webhookShape) }),
      },
      handle: () => ({ webhooks: webhooks.views().map(webhookJson) }),
    }),
    route({
      method: "POST",
      scope: "admin",
      path: `${ONE}/test`,
      summary: "Send an event webhook.test to this one",
      answer: DONE,
      handle: ({ params }) => webhooks.test(params.name),
    }),
    route({
      method: "GET",
      scope: "admin",
      path: `${ONE}/dead-letters`,
      summary: "Events that were given up after a day",
      answer: {
        status: 200,
        description: "The oldest first",
        schema: z.object({ dead_letters: z.array(letterShape) }),
      },
      handle: ({ params }) => ({ dead_letters: webhooks.deadLetters(params.name).map(letterJson) }),
    }),
    route({
      method: "POST",
      scope: "admin",
      path: `${ONE}/dead-letters/resend`,
      summary: "Try all of them again, for another day",
      answer: resent,
      handle: async ({ params }) => ({ resent: await webhooks.resend(params.name) }),
    }),
  ];
}

function webhookJson({ lastError, deliveredAtMs, ...view }: WebhookView) {
  return {
    ...view,
    ...(lastError === "" ? {} : { last_error: lastError }),
    ...(deliveredAtMs === null ? {} : { delivered_at: deliveredAtMs }),
  };
}

function letterJson({ event: { atMs, ...event }, attempts, error }: DeadLetterView) {
  return { ...event, at: atMs, attempts, error };
}
