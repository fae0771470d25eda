import * as z from "zod";
import type { LogsControl } from "#core/control.ts";
import { LOG_LEVELS, type LogEvent } from "#core/log.ts";
import { route, type Route } from "#api/route.ts";
import { queryInt, queryOf } from "#api/shapes.ts";
import type { Subscribers } from "#api/subscriber.ts";

/** Longer texts are cut, so that a queue of records has a bound in bytes. */
const MAX_TEXT_CHARACTERS = 16_384;

/** Lines of the past that one stream may begin with. */
const MOST_HISTORY = 1_000;

const record = z.union([
  z.object({ type: z.enum(LOG_LEVELS), payload: z.string() }),
  z.object({
    time: z.string().regex(/^\d\d:\d\d:\d\d$/),
    level: z.enum(["debug", "info", "warn", "error"]),
    message: z.string(),
    fields: z.array(z.never()),
  }),
]);

const query = queryOf({
  level: z.enum(LOG_LEVELS).default("info"),
  format: z.string().default(""),
  history: queryInt(0, MOST_HISTORY).default(0).describe("So many of the lines before come first"),
});

export function logRoutes(logs: LogsControl, subscribers: Subscribers): readonly Route[] {
  return [
    route({
      method: "GET",
      scope: "read",
      path: "/logs",
      stream: true,
      summary: "Log events at a level and above, whatever level is configured",
      query,
      answer: {
        status: 200,
        description: "A record an event; `format=structured` adds the time, `history` the lines before",
        schema: record,
      },
      handle(call) {
        const subscriber = subscribers.add(call);
        if (subscriber === null) return;
        const write = call.query.format === "structured" ? structured : plain;
        const { level, history } = call.query;
        for (const event of logs.recent(level, history)) subscriber.send(JSON.stringify(write(event)));
        const watch = logs.watch(level, (event) => {
          subscriber.send(JSON.stringify(write(event)));
        });
        subscriber.onClose(() => watch[Symbol.dispose]());
      },
    }),
  ];
}

function plain({ level, text }: LogEvent) {
  return { type: level, payload: text.slice(0, MAX_TEXT_CHARACTERS) };
}

function structured({ level, text, atMs }: LogEvent) {
  const time = new Date(atMs).toTimeString().slice(0, 8);
  const message = text.slice(0, MAX_TEXT_CHARACTERS);
  return { time, level: level === "warning" ? "warn" : level, message, fields: [] };
}
