import { DialError } from "#core/errors.ts";
import { BOTH_NETWORKS, type Outbound, type OutboundEnv, TCP_ONLY } from "#core/outbound.ts";
import type { Resolver } from "#core/resolver.ts";
import { NodeTunnel } from "./node-tunnel.ts";
import type { OutboundOptions } from "./options.ts";
import { readSettings } from "./settings.ts";
import { openTunnelDialer } from "./tunnel-dialer.ts";

/** Throws `ConfigError` for keys that do not fit. */
export async function openOutbound(options: OutboundOptions, env: OutboundEnv): Promise<Outbound> {
  const { name, resolver, destinations = resolver } = env;
  const tunnel = new NodeTunnel(readSettings(options), env);
  const remote = openRemoteNames(options, env, tunnel);
  const dialer = openTunnelDialer(tunnel, remote ?? destinations, remote !== null);
  return {
    name,
    type: "WireGuard",
    networks: options.udp ? BOTH_NETWORKS : TCP_ONLY,
    sendsDatagrams: true,
    connect: (destination, context) => dialer.connect(destination, context),
    async associate(destination, context) {
      if (!options.udp) throw new DialError("unsupported", `${name}: udp is not enabled for this proxy`);
      return await dialer.associate(destination, context);
    },
    async [Symbol.asyncDispose]() {
      await remote?.[Symbol.asyncDispose]();
      await tunnel[Symbol.asyncDispose]();
    },
  };
}

/** Null: names of destinations are looked up as those of others. Throws `ConfigError` for what is no server. */
function openRemoteNames(
  { "remote-dns-resolve": isWanted, dns: servers = [] }: OutboundOptions,
  { name, resolver, lookUpAt, log }: OutboundEnv,
  tunnel: NodeTunnel,
): (Resolver & AsyncDisposable) | null {
  if (!isWanted || lookUpAt === undefined) return null;
  if (servers.length > 0)
    return lookUpAt(servers, `proxy ${name}: dns`, openTunnelDialer(tunnel, resolver, false));
  log.warning(`proxy ${name}: remote-dns-resolve does nothing without dns: names are looked up here`);
  return null;
}
