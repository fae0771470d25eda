import * as z from "zod";
import type { ProxiesControl, ProxyView } from "#core/control.ts";
import { ApiError } from "#core/errors.ts";
import { notFound } from "#api/errors.ts";
import { LongList } from "#api/long-json.ts";
import { route, type Params, type Route } from "#api/route.ts";
import { DELAYS, delayTest, groupQuery } from "./delay.ts";
import { proxyJson, proxyShape } from "./proxy-json.ts";

export function groupRoutes(proxies: ProxiesControl): readonly Route[] {
  const find = ({ name }: Params<"/group/:name">): ProxyView => {
    const proxy = proxies.get(name);
    if (proxy === null || proxy.group === null) throw notFound();
    return proxy;
  };
  return [
    route({
      method: "GET",
      scope: "read",
      path: "/group",
      slash: true,
      summary: "All groups",
      answer: {
        status: 200,
        description: "A list, in file order",
        schema: z.object({ proxies: z.array(proxyShape) }),
      },
      handle: () => ({
        proxies: new LongList(
          Iterator.from(proxies.list())
            .filter(({ group }) => group !== null)
            .map(proxyJson),
        ),
      }),
    }),
    route({
      method: "GET",
      scope: "read",
      path: "/group/:name",
      summary: "One group",
      answer: { status: 200, description: "The group", schema: proxyShape },
      handle: ({ params }) => proxyJson(find(params)),
    }),
    route({
      method: "GET",
      scope: "operate",
      path: "/group/:name/delay",
      acts: true,
      summary: "Measure the delay of all members; clears the pin",
      query: groupQuery,
      answer: DELAYS,
      faults: { 504: "No member answered" },
      prepare(params) {
        const { name, group } = find(params);
        if (group?.fixed) proxies.unfix(name); // even where the query turns out to be bad
      },
      async handle({ params, query, signal }) {
        const delays = await proxies.testGroup(params.name, delayTest(query, signal));
        if (delays.size === 0) throw new ApiError(504, "get delay: all proxies timeout");
        return Object.fromEntries(delays);
      },
    }),
  ];
}
