import * as z from "zod";
import type { Control } from "#core/control.ts";
import { ShapeError } from "#api/errors.ts";
import { DONE, JsonText, route, type Call, type Route } from "#api/route.ts";
import { queryInt, queryOf } from "#api/shapes.ts";
import { every, guarded, type Subscribers } from "#api/subscriber.ts";
import { ConnectionsWriter, endedJson } from "./connections-json.ts";
import { connectionsShape, endedShape } from "./connections-shape.ts";

const DEFAULT_INTERVAL_MS = 1000;
/** The shortest interval; shorter ones are raised to it. */
const MIN_INTERVAL_MS = 50;
const MAX_INTERVAL_MS = 86_400_000;

const interval = queryInt(1, MAX_INTERVAL_MS);

export function connectionRoutes(control: Control, subscribers: Subscribers): readonly Route[] {
  const { connections } = control;
  const writer = new ConnectionsWriter(control);
  const path = "/connections";
  return [
    route({
      method: "GET",
      scope: "read",
      path,
      slash: true,
      stream: true,
      summary: "Live sessions and totals",
      query: queryOf({ interval: z.string().optional() }),
      answer: {
        status: 200,
        description: "One document; over a WebSocket one every `interval` ms",
        schema: connectionsShape,
      },
      handle(call) {
        if (call.upgrade === null) return new JsonText(writer.write());
        stream(writer, call, call.query.interval, subscribers);
        return undefined;
      },
    }),
    route({
      method: "GET",
      scope: "read",
      path: "/api/svc/connections/ended",
      summary: "The last thousand sessions that have ended, since weir runs, and why",
      answer: { status: 200, description: "The newest first", schema: endedShape },
      handle: () => endedJson(connections),
    }),
    route({
      method: "DELETE",
      scope: "operate",
      path,
      slash: true,
      summary: "Close every session",
      answer: DONE,
      handle: () => connections.closeAll(),
    }),
    route({
      method: "DELETE",
      scope: "operate",
      path: `${path}/:id`,
      summary: "Close one session; an unknown id is no error",
      answer: DONE,
      handle({ params }) {
        connections.close(params.id);
      },
    }),
  ];
}

function stream(
  writer: ConnectionsWriter,
  call: Call,
  wish: string | undefined,
  subscribers: Subscribers,
): void {
  const parsed = interval.safeParse(wish);
  if (wish !== undefined && !parsed.success) throw new ShapeError(parsed.error);
  const intervalMs = Math.max(MIN_INTERVAL_MS, parsed.data ?? DEFAULT_INTERVAL_MS);
  const subscriber = subscribers.add(call);
  if (subscriber === null) return;
  const tick = (): void => {
    subscriber.sendParts(writer.parts()); // a slow reader gets the next one when it has taken this
  };
  guarded(subscriber, tick);
  every(intervalMs, subscriber, tick);
}
