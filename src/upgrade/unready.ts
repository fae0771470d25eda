/** What of a configuration cannot go from one process to another yet. */
import type { Config } from "#config/config.ts";

/** A line each; none: an upgrade can begin. */
export function unready(config: Config): readonly string[] {
  const listeners = config.listeners.flatMap(({ name, protocol: { type, staysWithProcess }, options }) => {
    const why = staysWithProcess?.(options) ?? null;
    return why === null ? [] : [`listener ${name} (${type}): ${why}`];
  });
  const { dns, tun, tunListeners, svc } = config;
  const tuns = [
    ...(tun.enable ? [{ ...tun, where: "tun" }] : []),
    ...tunListeners.flatMap((each) => (each.enable ? [{ ...each, where: `listener ${each.name}` }] : [])),
  ];
  return [
    ...listeners,
    ...(dns.enable && (dns.listenQuic ?? dns.listenH3) !== null
      ? ["dns.listen-quic, dns.listen-h3: their QUIC connections all have one UDP socket"]
      : []),
    ...tuns.flatMap(({ where, fileDescriptor }) =>
      fileDescriptor > 0 ? [`${where}.file-descriptor: is the number that this process has`] : [],
    ),
    ...((svc?.fleet ?? null) === null ? [] : ["svc.fleet: this node's part of quotas goes with the process"]),
  ];
}
