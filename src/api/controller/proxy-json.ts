/** Views of proxies in the field names of the ecosystem (controller-api.md §6.1). */
import * as z from "zod";
import type { GroupView, ProxyView } from "#core/control.ts";
import { amount, instant, texts } from "#api/answer-shapes.ts";
import { timeJson } from "./time-json.ts";
import type { DelaySample, DelayState } from "#core/delays.ts";

const samples = z.array(z.object({ time: instant(), delay: z.int().min(0).max(65_535) })).max(10);

/** `id` is of leaves; from `all` on is of groups, `now`, `fixed` and `expectedStatus` where the kind has them. `unavailable` says why something cannot be used. */
export const proxyShape = z
  .object({
    name: z.string(),
    type: z.string().min(1),
    id: z.string().optional(),
    alive: z.boolean(),
    history: samples,
    extra: z.record(z.string(), z.object({ alive: z.boolean(), history: samples })),
    udp: z.boolean(),
    uot: z.boolean(),
    xudp: z.boolean(),
    tfo: z.boolean(),
    mptcp: z.boolean(),
    smux: z.boolean(),
    interface: z.string(),
    "routing-mark": amount(),
    "provider-name": z.string(),
    "dialer-proxy": z.string(),
    all: texts().optional(),
    now: z.string().optional(),
    testUrl: z.string().optional(),
    expectedStatus: z.string().optional(),
    fixed: z.string().optional(),
    hidden: z.boolean().optional(),
    icon: z.string().optional(),
    emptyFallback: z.string().optional(),
    unavailable: z.string().optional(),
  })
  .meta({ id: "Proxy" });

export function proxyJson(proxy: ProxyView) {
  const { name, type, id, alive, udp, uot, xudp, tfo, mptcp, smux, group } = proxy;
  return {
    name,
    type,
    ...(group === null ? { id } : groupJson(group)),
    alive,
    history: proxy.history.map(sampleJson),
    extra: Object.fromEntries([...proxy.extra].map(([url, state]) => [url, stateJson(state)])),
    udp,
    uot,
    xudp,
    tfo,
    mptcp,
    smux,
    interface: proxy.interfaceName,
    "routing-mark": proxy.routingMark,
    "provider-name": proxy.providerName,
    "dialer-proxy": proxy.dialerProxy,
    ...(proxy.unavailable === null ? {} : { unavailable: proxy.unavailable }),
  };
}

function groupJson({ now, members, testUrl, expectedStatus, fixed, hidden, icon, emptyFallback }: GroupView) {
  return {
    ...(now === null ? {} : { now }),
    all: members,
    testUrl,
    ...(expectedStatus === null ? {} : { expectedStatus }),
    ...(fixed === null ? {} : { fixed }),
    hidden,
    icon,
    emptyFallback,
  };
}

function stateJson({ alive, history }: DelayState) {
  return { alive, history: history.map(sampleJson) };
}

function sampleJson({ atMs, delayMs }: DelaySample) {
  return { time: timeJson(atMs), delay: delayMs };
}
