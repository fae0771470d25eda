import * as z from "zod";
import type { ProxyProvidersControl, ProxyProviderView } from "#core/control.ts";
import { amount, instant } from "#api/answer-shapes.ts";
import { notFound } from "#api/errors.ts";
import { LongList, LongMap } from "#api/long-json.ts";
import { DONE, route, type Params, type Route } from "#api/route.ts";
import { DELAY, DELAY_FAULTS, delayJson, delayTest, nodeQuery } from "./delay.ts";
import { proxyJson, proxyShape } from "./proxy-json.ts";
import { updatedAtJson } from "./time-json.ts";

const shape = z
  .object({
    name: z.string(),
    type: z.literal("Proxy"),
    vehicleType: z.enum(["HTTP", "File", "Inline", "Compatible"]),
    proxies: z.array(proxyShape),
    testUrl: z.string(),
    expectedStatus: z.string(),
    updatedAt: instant(),
    subscriptionInfo: z
      .object({ Upload: amount(), Download: amount(), Total: amount(), Expire: amount() })
      .optional(),
  })
  .meta({ id: "ProxyProvider" });

const path = "/providers/proxies/:provider";
const nodePath = `${path}/:node` as const;

type Find = (params: Params<typeof path>) => ProxyProviderView;

export function proxyProviderRoutes(providers: ProxyProvidersControl): readonly Route[] {
  const find: Find = (params) => {
    const provider = providers.get(params.provider);
    if (provider === null) throw notFound();
    return provider;
  };
  return [
    route({
      method: "GET",
      scope: "read",
      path: "/providers/proxies",
      slash: true,
      summary: "Providers of proxies",
      answer: {
        status: 200,
        description: "By name, each with its nodes",
        schema: z.object({ providers: z.record(z.string(), shape) }),
      },
      handle: () => ({
        providers: new LongMap(providers.list().map((it) => [it.name, providerJson(it)] as const)),
      }),
    }),
    route({
      method: "GET",
      scope: "read",
      path,
      summary: "One provider",
      answer: { status: 200, description: "The provider", schema: shape },
      handle: ({ params }) => providerJson(find(params)),
    }),
    route({
      method: "PUT",
      scope: "operate",
      path,
      summary: "Load the provider anew",
      answer: DONE,
      faults: { 503: "The provider could not be loaded; the earlier content stays" },
      handle: ({ params }) => providers.update(find(params).name),
    }),
    route({
      method: "GET",
      scope: "operate",
      path: `${path}/healthcheck`,
      acts: true,
      summary: "Test all nodes",
      answer: { status: 204, description: "All nodes have been tested" },
      handle: ({ params, signal }) => providers.healthCheck(find(params).name, signal),
    }),
    ...nodeRoutes(providers),
  ];
}

function nodeRoutes(providers: ProxyProvidersControl): readonly Route[] {
  const findNode = ({ provider, node: name }: Params<typeof nodePath>) => {
    const node = providers.node(provider, name);
    if (node === null) throw notFound();
    return node;
  };
  return [
    route({
      method: "GET",
      scope: "read",
      path: nodePath,
      summary: "One node of a provider",
      answer: { status: 200, description: "The node", schema: proxyShape },
      handle: ({ params }) => proxyJson(findNode(params)),
    }),
    route({
      method: "GET",
      scope: "operate",
      path: `${nodePath}/healthcheck`,
      acts: true,
      summary: "Measure the delay of a node",
      query: nodeQuery,
      answer: DELAY,
      faults: DELAY_FAULTS,
      prepare: (params) => void findNode(params),
      handle: ({ params, query, signal }) =>
        delayJson(providers.test(params.provider, params.node, delayTest(query, signal))),
    }),
  ];
}

function providerJson(provider: ProxyProviderView) {
  const { name, vehicleType, proxies, testUrl, expectedStatus, updatedAtMs, subscription } = provider;
  return {
    name,
    type: "Proxy",
    vehicleType,
    proxies: new LongList(Iterator.from(proxies).map(proxyJson)),
    testUrl,
    expectedStatus,
    updatedAt: updatedAtJson(updatedAtMs),
    ...(subscription === null ? {} : { subscriptionInfo: subscriptionJson(subscription) }),
  };
}

function subscriptionJson(info: NonNullable<ProxyProviderView["subscription"]>) {
  return {
    Upload: info.uploadBytes,
    Download: info.downloadBytes,
    Total: info.totalBytes,
    Expire: info.expiresAtUnixSeconds,
  };
}
