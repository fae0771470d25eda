/** `/api/svc/events`: what happens, as it happens, and what has happened while a client was away. */
import * as z from "zod";
import { openEventStream } from "#api/event-stream.ts";
import { notFound } from "#api/errors.ts";
import { route, type Route } from "#api/route.ts";
import { queryInt, queryOf } from "#api/shapes.ts";
import type { Subscribers } from "#api/subscriber.ts";
import type { WeirEvent } from "#core/events.ts";
import type { JournalControl } from "#core/journal.ts";

const query = queryOf({
  after: queryInt(0, Number.MAX_SAFE_INTEGER)
    .optional()
    .describe(
      "Begin behind this event, where no `Last-Event-ID` is sent; absent: with what happens from now on",
    ),
  types: z.string().optional().describe("Some types by commas, `user.*` for all of a kind; absent: all"),
});

export function eventRoutes(journal: JournalControl, subscribers: Subscribers): readonly Route[] {
  return [
    route({
      method: "GET",
      scope: "read",
      path: "/api/svc/events",
      summary: "Events as they happen, by server-sent events that can be resumed",
      query,
      answer: {
        status: 200,
        type: "text/event-stream",
        description:
          "`id` is the event's number, `event` its type, `data` JSON; `events.gap` where some are gone",
      },
      handle(call) {
        if (journal.secret === null) throw notFound();
        const after = lastEventOf(call.request.headers["last-event-id"]) ?? call.query.after ?? null;
        const { events, isCut } = journal.events.since(after);
        const wanted = filterOf(call.query.types ?? "");
        const stream = openEventStream(call, subscribers);
        if (isCut) stream.send({ event: "events.gap", data: JSON.stringify({ after }) });
        const send = (event: WeirEvent): void => {
          if (wanted(event.type)) stream.send(messageOf(event));
        };
        for (const event of events) send(event);
        const watch = journal.events.watch(send);
        stream.onClose(() => watch[Symbol.dispose]());
      },
    }),
  ];
}

function messageOf({ seq, type, subject, atMs, data }: WeirEvent) {
  return { id: String(seq), event: type, data: JSON.stringify({ seq, type, subject, at: atMs, data }) };
}

/** Null: none, or not one of ours. */
function lastEventOf(header: string | readonly string[] | undefined): number | null {
  return typeof header === "string" && /^\d{1,15}$/.test(header) ? Number(header) : null;
}

function filterOf(types: string): (type: string) => boolean {
  const words = types.split(",").flatMap((word) => (word.trim() === "" ? [] : [word.trim()]));
  if (words.length === 0) return () => true;
  return (type) =>
    words.some((word) => word === type || (word.endsWith(".*") && type.startsWith(word.slice(0, -1))));
}
