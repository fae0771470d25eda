import type { Socket } from "node:net";
import type { DialContext, Dialer } from "#core/outbound.ts";
import type { Resolver } from "#core/resolver.ts";
import type { Destination, Ip } from "#core/session.ts";
import { addressesOf } from "#net/address/families.ts";
import { dialTcp } from "#net/dial/dial.ts";
import { applyKeepAlive, DEFAULT_KEEP_ALIVE } from "#net/dial/keep-alive.ts";
import { race } from "#net/dial/race.ts";
import { DatagramSockets } from "#net/udp/datagram-socket.ts";
import { DirectFlow } from "#net/udp/direct-flow.ts";
import type { NodeTunnel } from "./node-tunnel.ts";

const CONNECT_MS = 5_000;
const STAGGER_MS = 250;
const MOST_ADDRESSES = 16;

/** `resolvesAnew`: a name that came with an address is looked up all the same, for `names` has servers of its own. */
export function openTunnelDialer(node: NodeTunnel, names: Resolver, resolvesAnew: boolean): Dialer {
  const { families } = node;
  const datagrams = new DatagramSockets();

  const dial = async (ip: Ip, port: number, signal: AbortSignal): Promise<Socket> => {
    const tunnel = await node.get();
    await tunnel.ready(ip, signal);
    const { sockets } = tunnel.network;
    const socket = await dialTcp({ ip, port }, { signal, timeoutMs: CONNECT_MS, sockets });
    applyKeepAlive(socket, DEFAULT_KEEP_ALIVE);
    return socket;
  };

  return {
    async connect(to: Destination, { signal }: DialContext) {
      const destination = resolvesAnew && to.host !== null ? { ...to, ip: null } : to;
      const addresses = await addressesOf(destination, names, families, signal);
      const attempt = (ip: Ip, stop: AbortSignal) => dial(ip, to.port, stop);
      const discard = (loser: Socket): void => void loser.destroy();
      const how = { signal, staggerMs: STAGGER_MS };
      return await race(addresses.slice(0, MOST_ADDRESSES), attempt, discard, how);
    },

    async associate({ ip }: Destination, { signal }: DialContext) {
      const tunnel = await node.get();
      if (ip !== null && !resolvesAnew) await tunnel.ready(ip, signal);
      const { sockets } = tunnel.network;
      return new DirectFlow({
        resolver: names,
        families,
        resolvesAnew,
        sockets,
        datagrams,
        reach: null,
        noted: null,
      });
    },
  };
}
