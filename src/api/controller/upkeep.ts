import * as z from "zod";
import type { UpkeepControl } from "#core/control.ts";
import { route, type Route } from "#api/route.ts";

const OK = { status: "ok" } as const;

export function upkeepRoutes(upkeep: UpkeepControl): readonly Route[] {
  const common = {
    method: "POST",
    scope: "admin",
    answer: { status: 200, description: "It went well", schema: z.object({ status: z.literal("ok") }) },
  } as const;
  return [
    route({
      ...common,
      path: "/restart",
      summary: "Answer, then start the process anew",
      async handle({ signal }) {
        afterwards(signal, await upkeep.prepareRestart());
        return OK;
      },
    }),
    route({
      ...common,
      path: "/upgrade/ui",
      summary: "Download the dashboard anew",
      faults: { 500: "Nothing is configured, or the download failed; the earlier one stays" },
      async handle() {
        await upkeep.upgradeUi();
        return OK;
      },
    }),
    ...["/configs/geo", "/upgrade/geo"].map((path) =>
      route({
        method: "POST",
        scope: "admin",
        path,
        summary: "Download the geodata files in use",
        answer: { status: 204, description: "Downloaded, verified and in force" },
        faults: { 500: "One runs already, or it failed; the earlier files stay" },
        handle: () => upkeep.updateGeo(),
      }),
    ),
  ];
}

/** The client gets its answer first, unless it has left already. */
export function afterwards(over: AbortSignal, act: () => void): void {
  if (over.aborted) act();
  else over.addEventListener("abort", act, { once: true });
}
