import * as z from "zod";
import type { ProxiesControl, ProxyView } from "#core/control.ts";
import { ApiError } from "#core/errors.ts";
import { notFound } from "#api/errors.ts";
import { LongMap } from "#api/long-json.ts";
import { DONE, route, type Params, type Route } from "#api/route.ts";
import { jsonObject } from "#api/shapes.ts";
import { DELAY, DELAY_FAULTS, delayJson, delayTest, nodeQuery } from "./delay.ts";
import { proxyJson, proxyShape } from "./proxy-json.ts";

const path = "/proxies/:name";

type Find = (params: Params<typeof path>) => ProxyView;

export function proxyRoutes(proxies: ProxiesControl): readonly Route[] {
  const find: Find = ({ name }) => {
    const proxy = proxies.get(name);
    if (proxy === null) throw notFound();
    return proxy;
  };
  return [
    route({
      method: "GET",
      scope: "read",
      path: "/proxies",
      slash: true,
      summary: "Proxies, groups and built-ins",
      answer: {
        status: 200,
        description: "By name; nodes of providers are not among them",
        schema: z.object({ proxies: z.record(z.string(), proxyShape) }),
      },
      handle: () => ({ proxies: byName(proxies.list()) }),
    }),
    route({
      method: "GET",
      scope: "read",
      path,
      summary: "One proxy or group",
      answer: { status: 200, description: "The proxy", schema: proxyShape },
      handle: ({ params }) => proxyJson(find(params)),
    }),
    ...choiceRoutes(proxies, find),
    route({
      method: "GET",
      scope: "operate",
      path: `${path}/delay`,
      acts: true,
      summary: "Measure the delay of a node, or of the current member of a group",
      query: nodeQuery,
      answer: DELAY,
      faults: DELAY_FAULTS,
      prepare: (params) => void find(params),
      handle: ({ params, query, signal }) => delayJson(proxies.test(params.name, delayTest(query, signal))),
    }),
  ];
}

function choiceRoutes(proxies: ProxiesControl, find: Find): readonly Route[] {
  return [
    route({
      method: "PUT",
      scope: "operate",
      path,
      summary: "Choose a member of a Selector, or pin one of a URLTest or Fallback group",
      body: jsonObject({ name: z.string() }),
      answer: DONE,
      prepare: (params) => refuseUnlessChoosable(find(params)),
      handle({ params, body, note }) {
        note({ before: find(params).group?.now ?? null, after: body.name });
        if (proxies.select(params.name, body.name)) return;
        throw new ApiError(400, "Selector update error: no such member in this group");
      },
    }),
    route({
      method: "DELETE",
      scope: "operate",
      path,
      summary: "Take the pin of a URLTest or Fallback group away",
      answer: DONE,
      handle({ params, note }) {
        const { name, group } = find(params);
        if (group?.fixed === undefined || group.fixed === null)
          throw new ApiError(400, "This proxy cannot be pinned");
        note({ before: group.fixed });
        proxies.unfix(name);
      },
    }),
  ];
}

/** A person can choose in every group but load-balancing, which has no current member. */
function refuseUnlessChoosable({ group }: ProxyView): void {
  if (group === null || group.now === null) throw new ApiError(400, "Must be a Selector");
}

function byName(list: Iterable<ProxyView>): LongMap {
  return new LongMap(Iterator.from(list).map((proxy) => [proxy.name, proxyJson(proxy)] as const));
}
