/** The outbound without a proxy: kernel sockets to literal addresses. All other outbounds are built on this one. */
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { DialError } from "#core/errors.ts";
import type { DialPlan, DialTemplate } from "#core/dial-plan.ts";
import type { DialContext, Dialer } from "#core/outbound.ts";
import type { Reach } from "#core/reach.ts";
import type { Resolver } from "#core/resolver.ts";
import { destinationText, endpointText } from "#core/session.ts";
import type { Destination, Endpoint, Ip, Network } from "#core/session.ts";
import { addressesOf, allows, choiceOf } from "#net/address/families.ts";
import type { Families, IpVersion } from "#net/address/families.ts";
import { dialTcp } from "./dial.ts";
import { EgressSockets, type Egress } from "./egress.ts";
import { DatagramSockets } from "#net/udp/datagram-socket.ts";
import { ConnectedFlow } from "#net/udp/connected-flow.ts";
import { DirectFlow } from "#net/udp/direct-flow.ts";
import { applyKeepAlive, DEFAULT_KEEP_ALIVE, probesOf } from "./keep-alive.ts";
import type { KeepAlive } from "./keep-alive.ts";
import { familyOf } from "#net/address/ip.ts";
import { parseIp } from "#net/address/ip.ts";
import { race } from "./race.ts";
import type { SelfDials } from "./self-dials.ts";

export interface DirectDialerOptions {
  readonly resolver: Resolver;
  /** SO_BINDTODEVICE; empty or absent: the routing table decides. */
  readonly interfaceName?: string;
  /** SO_MARK; 0 or absent: none. */
  readonly routingMark?: number;
  /** The options that a TUN requires of sockets at present; absent: none. */
  readonly egress?: Egress;
  readonly ipVersion?: IpVersion;
  /** What leads to our own listeners is noted there. Absent: nothing is. */
  readonly selfDials?: SelfDials | null;
  /** The name of the outbound whose server is dialled; absent: none. */
  readonly owner?: string;
  /** All addresses at once, the first handshake wins. */
  readonly tcpConcurrent?: boolean;
  readonly ipv6?: boolean;
  /** A name that came with an address is resolved all the same: `resolver` has servers of its own. */
  readonly resolvesAnew?: boolean;
  readonly keepAlive?: KeepAlive;
  /** Of one handshake. */
  readonly connectTimeoutMs?: number;
}

/** RFC 8305 §5, "Connection Attempt Delay". */
const STAGGER_MS = 250;
const CONNECT_TIMEOUT_MS = 5_000;
/** A name with more addresses than this is cut: later ones would not be tried before the client gives up. */
const MAX_ADDRESSES = 16;

/** Throws `ConfigError` where this system cannot mark or bind sockets as asked. Holds nothing that needs disposal. */
export function openDirectDialer(options: DirectDialerOptions): Dialer {
  const {
    resolver,
    keepAlive = DEFAULT_KEEP_ALIVE,
    connectTimeoutMs: timeoutMs = CONNECT_TIMEOUT_MS,
  } = options;
  const { resolvesAnew = false } = options;
  const asAsked = (destination: Destination): Destination =>
    resolvesAnew && destination.host !== null ? { ...destination, ip: null } : destination;
  const families: Families = { ipVersion: options.ipVersion ?? "dual", ipv6: options.ipv6 ?? true };
  const staggerMs = options.tcpConcurrent === true ? 0 : STAGGER_MS;
  const { interfaceName = "", routingMark = 0, egress = null, selfDials = null, owner = "" } = options;
  const sockets = new EgressSockets({ interfaceName, routingMark }, egress);

  const probes = probesOf(keepAlive);
  const datagrams = new DatagramSockets();

  const dial = async (ip: Ip, port: number, context: DialContext): Promise<Socket> => {
    const { signal, metadata } = context;
    const hop = selfDials?.hop("tcp", ip, port, metadata) ?? null;
    using _ = hop && selfDials?.dials(hop);
    const onBound = (bound: Socket): void => {
      const near = parseIp(bound.localAddress ?? "");
      if (near === null || bound.localPort === undefined || bound.destroyed) return;
      const note = hop && selfDials?.add("tcp", { ip: near, port: bound.localPort }, hop, context, owner);
      bound.once("close", () => note?.[Symbol.dispose]());
    };
    const how = { signal, timeoutMs, sockets: sockets.for(ip), ...(hop && { onBound }) };
    const socket = await dialTcp({ ip, port }, how);
    applyKeepAlive(socket, keepAlive);
    return socket;
  };

  /** What may be dialled of what a destination leads to. */
  const permitted = async (
    destination: Destination,
    reach: Reach | null,
    signal: AbortSignal,
  ): Promise<readonly Ip[]> => {
    const addresses = await addressesOf(destination, resolver, families, signal);
    if (reach === null) return addresses;
    const within = addresses.filter((ip) => reach.refusal("tcp", ip, destination.port) === null);
    const [first] = addresses;
    if (within.length === 0 && first !== undefined) insist(reach, "tcp", first, destination.port);
    return within;
  };

  const choose = async (destination: Destination, context: DialContext): Promise<Socket> => {
    const { signal, reach = null } = context;
    const addresses = await permitted(destination, reach, signal);
    const attempt = (ip: Ip, stop: AbortSignal): Promise<Socket> =>
      dial(ip, destination.port, { ...context, signal: stop });
    const discard = (loser: Socket): void => void loser.destroy();
    return await race(addresses.slice(0, MAX_ADDRESSES), attempt, discard, { signal, staggerMs });
  };

  return {
    async connect(to: Destination, context: DialContext): Promise<Duplex> {
      const destination = asAsked(to);
      const { ip, port } = destination;
      if (ip === null || !allows(families, familyOf(ip))) return choose(destination, context);
      insist(context.reach ?? null, "tcp", ip, port);
      return dial(ip, port, context); // nothing to choose from
    },

    plain(to: Destination, reach: Reach | null, signal: () => AbortSignal) {
      const destination = asAsked(to);
      const lead = (addresses: readonly Ip[]): DialPlan | null => {
        const [ip] = addresses as [Ip, ...Ip[]];
        if (selfDials?.leadsHere("tcp", ip, destination.port) === true) return null; // it is to be noted
        const isFirstOfMany = addresses.length > 1;
        const attemptMs = isFirstOfMany ? Math.min(STAGGER_MS, timeoutMs) : timeoutMs;
        return {
          ip,
          port: destination.port,
          ...sockets.optionsFor(ip),
          probes,
          timeoutMs: attemptMs,
          isFirstOfMany,
        };
      };
      const { ip } = destination;
      if (ip !== null && allows(families, familyOf(ip))) {
        insist(reach, "tcp", ip, destination.port);
        return lead([ip]);
      }
      if (staggerMs === 0) return null; // all addresses at once
      return permitted(destination, reach, signal()).then(lead);
    },

    template(): DialTemplate | null {
      const options = sockets.template;
      if (options === null) return null;
      const [v4, v6] = [allows(families, 4), allows(families, 6)];
      const { shared } = resolver;
      // All addresses at once are for the main thread to dial.
      const names = shared === undefined || staggerMs === 0 ? null : { ...shared, ...choiceOf(families) };
      const first = Math.min(STAGGER_MS, timeoutMs);
      return { ...options, probes, timeoutMs, v4, v6, names: names && { ...names, timeoutMs: first } };
    },

    associateWith(to: Endpoint) {
      // A hop to our own listeners is noted, which a connected flow does not do.
      const hop = selfDials?.hop("udp", to.ip, to.port, null) ?? null;
      return hop !== null ? null : ConnectedFlow.open(to, sockets.for(to.ip));
    },

    async associate(destination: Destination, context: DialContext) {
      const { signal, reach = null } = context;
      if (signal.aborted) throw new DialError("aborted", `udp ${destinationText(destination)}: aborted`);
      const { ip, port } = asAsked(destination);
      if (ip !== null) insist(reach, "udp", ip, port);
      const made = sockets.for(destination.ip);
      const noted = selfDials === null ? null : { selfDials, context, owner };
      return new DirectFlow({ resolver, families, resolvesAnew, sockets: made, datagrams, reach, noted });
    },
  };
}

/** Throws where this client may not be connected to the address. */
function insist(reach: Reach | null, network: Network, ip: Ip, port: number): void {
  const why = reach?.refusal(network, ip, port) ?? null;
  if (why !== null) throw new DialError("forbidden", `${endpointText({ ip, port })} is ${why}`);
}
