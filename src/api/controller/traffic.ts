/** /traffic and /memory: one record a second. */
import * as z from "zod";
import type { ConnectionsControl, Control } from "#core/control.ts";
import { amount } from "#api/answer-shapes.ts";
import { route, type Route } from "#api/route.ts";
import { every, type Subscribers } from "#api/subscriber.ts";

const PERIOD_MS = 1000;

export function trafficRoutes(control: Control, subscribers: Subscribers): readonly Route[] {
  return [
    route({
      method: "GET",
      scope: "read",
      path: "/traffic",
      stream: true,
      summary: "Bytes of the last second and since start",
      answer: {
        status: 200,
        description: "A record a second, the first after one second",
        schema: z.object({ up: amount(), down: amount(), upTotal: amount(), downTotal: amount() }),
      },
      handle(call) {
        const subscriber = subscribers.add(call);
        if (subscriber === null) return;
        const next = rates(control.connections);
        every(PERIOD_MS, subscriber, () => subscriber.send(JSON.stringify(next())));
      },
    }),
    route({
      method: "GET",
      scope: "read",
      path: "/memory",
      stream: true,
      summary: "Resident memory in bytes",
      answer: {
        status: 200,
        description: "A record a second; the first says 0",
        schema: z.object({ inuse: amount(), oslimit: amount() }),
      },
      handle(call) {
        const subscriber = subscribers.add(call);
        if (subscriber === null) return;
        let inuse = 0; // dashboards scale their axis by the first record and expect 0 there
        every(PERIOD_MS, subscriber, () => {
          subscriber.send(JSON.stringify({ inuse, oslimit: 0 }));
          inuse = control.memoryBytes();
        });
      },
    }),
  ];
}

/** Differences between calls, scaled to one second: a late timer must not show as a burst. */
function rates(connections: ConnectionsControl) {
  let before = connections.totals();
  let atMs = performance.now();
  return () => {
    const now = connections.totals();
    const nowMs = performance.now();
    const perSecond = 1000 / Math.max(1, nowMs - atMs);
    const record = {
      up: Math.round((now.uploadBytes - before.uploadBytes) * perSecond),
      down: Math.round((now.downloadBytes - before.downloadBytes) * perSecond),
      upTotal: now.uploadBytes,
      downTotal: now.downloadBytes,
    };
    before = now;
    atMs = nowMs;
    return record;
  };
}
