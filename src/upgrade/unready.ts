/** What of a configuration cannot go from one process to another yet. */
import type { Config } from "#config/config.ts";

/** A line each; none: an upgrade can begin. */
export function unready(config: Config): readonly string[] {
  const listeners = config.listeners.flatMap(({ name, protocol: { type, staysWithProcess }, options }) => {
    const why = staysWithProcess?.(options) ?? null;
    return why === null ? [] : [`listener ${name} (${type}): ${why}`];
  });
  const { dns, tun, tunListeners, svc } = config;
  return [
    ...listeners,
    ...(dns.enable && (dns.listenQuic ?? dns.listenH3) !== null
      ? ["dns.listen-quic, dns.listen-h3: their QUIC connections all have one UDP socket"]
      : []),
    ...(tun.enable ? ["tun: its device, routes and nftables go with the process that made them"] : []),
    ...tunListeners.map(
      ({ name }) => `listener ${name} (tun): its device goes with the process that made it`,
    ),
    ...(dns.enable && dns.listen !== null && dns.enhancedMode === "fake-ip"
      ? ["dns.enhanced-mode: fake addresses that are given out meanwhile would be given out twice"]
      : []),
    ...((svc?.fleet ?? null) === null ? [] : ["svc.fleet: this node's part of quotas goes with the process"]),
  ];
}
