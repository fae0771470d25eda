/** Views of proxies in the field names of the ecosystem (controller sheet §6.1). */
import type { GroupView, ProxyView } from "#core/control.ts";
import { timeJson } from "./time-json.ts";
import type { DelaySample, DelayState } from "#core/delays.ts";

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
