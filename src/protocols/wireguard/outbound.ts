import type { Socket } from "node:net";
import { asDialError, DialError } from "#core/errors.ts";
import { BOTH_NETWORKS, TCP_ONLY } from "#core/outbound.ts";
import type { DialContext, Outbound, OutboundEnv } from "#core/outbound.ts";
import type { Resolver } from "#core/resolver.ts";
import type { DatagramFlow, Destination, Ip } from "#core/session.ts";
import { addressesOf, type Families } from "#net/address/families.ts";
import { bytesOfIp, toDestination } from "#net/address/ip.ts";
import { dialTcp } from "#net/dial/dial.ts";
import { applyKeepAlive, DEFAULT_KEEP_ALIVE } from "#net/dial/keep-alive.ts";
import { race } from "#net/dial/race.ts";
import { DatagramSockets } from "#net/udp/datagram-socket.ts";
import { DirectFlow } from "#net/udp/direct-flow.ts";
import { itemAt } from "#lib/at.ts";
import { openInnerNetwork } from "./inner-network.ts";
import type { OutboundOptions } from "./options.ts";
import { readSettings, type Settings } from "./settings.ts";
import { Tunnel } from "./tunnel.ts";
import { type TunnelLease, Tunnels } from "./tunnels.ts";

const CONNECT_MS = 5_000;
const STAGGER_MS = 250;
const MOST_ADDRESSES = 16;
/** Looking a server's name up, or dialling what carries its datagrams. */
const WAY_MS = 5_000;

/** Throws `ConfigError` for keys that do not fit. */
export async function openOutbound(options: OutboundOptions, env: OutboundEnv): Promise<Outbound> {
  return new WireGuardNode(options, readSettings(options), env);
}

class WireGuardNode implements Outbound {
  readonly name: string;
  readonly type = "WireGuard";
  readonly networks;
  readonly sendsDatagrams = true;
  readonly #env: OutboundEnv;
  readonly #settings: Settings;
  readonly #key: string;
  readonly #families: Families;
  readonly #tunnels: Tunnels;
  readonly #datagrams = new DatagramSockets();
  /** `remote-dns-resolve`; null: names of destinations are looked up as those of others. */
  readonly #remoteNames: (Resolver & AsyncDisposable) | null;
  #lease: Promise<TunnelLease> | null = null;

  constructor(options: OutboundOptions, settings: Settings, env: OutboundEnv) {
    this.name = env.name;
    this.networks = options.udp ? BOTH_NETWORKS : TCP_ONLY;
    this.#env = env;
    this.#settings = settings;
    this.#key = JSON.stringify([env.name, options]);
    this.#families = familiesOf(settings);
    this.#remoteNames = this.#openRemoteNames(options);
    this.#tunnels = env.memory?.of(Tunnels) ?? new Tunnels();
  }

  async connect(destination: Destination, { signal }: DialContext): Promise<Socket> {
    const { tunnel } = await this.#tunnel();
    const addresses = await addressesOf(destination, this.#names, this.#families, signal);
    const attempt = (ip: Ip, stop: AbortSignal) => this.#dial(tunnel, ip, destination.port, stop);
    const discard = (loser: Socket): void => void loser.destroy();
    return await race(addresses.slice(0, MOST_ADDRESSES), attempt, discard, {
      signal,
      staggerMs: STAGGER_MS,
    });
  }

  async associate(destination: Destination, { signal }: DialContext): Promise<DatagramFlow> {
    if (!this.networks.has("udp"))
      throw new DialError("unsupported", `${this.name}: udp is not enabled for this proxy`);
    const { tunnel } = await this.#tunnel();
    if (destination.ip !== null) await tunnel.ready(bytesOfIp(destination.ip), signal);
    return new DirectFlow({
      resolver: this.#names,
      families: this.#families,
      resolvesAnew: false,
      sockets: tunnel.network.sockets,
      datagrams: this.#datagrams,
      reach: null,
      noted: null,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const lease = await this.#lease?.catch(() => null);
    this.#lease = null;
    await this.#remoteNames?.[Symbol.asyncDispose]();
    await lease?.[Symbol.asyncDispose]();
  }

  get #names(): Resolver {
    return this.#remoteNames ?? this.#env.destinations ?? this.#env.resolver;
  }

  #openRemoteNames(options: OutboundOptions): (Resolver & AsyncDisposable) | null {
    const { lookUpAt, log } = this.#env;
    const { "remote-dns-resolve": isWanted, dns: servers = [] } = options;
    if (!isWanted || lookUpAt === undefined) return null;
    if (servers.length > 0) return lookUpAt(servers, `proxy ${this.name}: dns`, this);
    log.warning(`proxy ${this.name}: remote-dns-resolve does nothing without dns: names are looked up here`);
    return null;
  }

  async #dial(tunnel: Tunnel, ip: Ip, port: number, signal: AbortSignal): Promise<Socket> {
    await tunnel.ready(bytesOfIp(ip), signal);
    const socket = await dialTcp(
      { ip, port },
      { signal, timeoutMs: CONNECT_MS, sockets: tunnel.network.sockets },
    );
    applyKeepAlive(socket, DEFAULT_KEEP_ALIVE);
    return socket;
  }

  async #tunnel(): Promise<TunnelLease> {
    this.#lease ??= this.#tunnels.take(
      this.#key,
      (at) => this.#open(at),
      () => this.#make(),
    );
    try {
      return await this.#lease;
    } catch (error) {
      this.#lease = null; // the next dial tries again
      throw new DialError("unsupported", `${this.name}: ${asDialError(error, "the tunnel").message}`, {
        cause: error,
      });
    }
  }

  async #make(): Promise<Tunnel> {
    const { own, mtuBytes, addresses, persistentMs, peers } = this.#settings;
    const routes = peers.flatMap(({ allowed }) => allowed);
    const network = openInnerNetwork({ mtuBytes, addresses, routes });
    const { nowMs } = this.#env;
    const settings = peers.map((peer) => ({ ...peer, persistentMs, label: `${peer.server}:${peer.port}` }));
    return new Tunnel(network, { own, mtuBytes, nowMs, peers: settings }, (at) => this.#open(at));
  }

  /** By an address that is looked up here: a name may have another one when the server has moved. */
  async #open(at: number) {
    const { server, port } = itemAt(this.#settings.peers, at);
    const signal = AbortSignal.timeout(WAY_MS);
    const [ip = null] = await addressesOf(
      toDestination(server, port),
      this.#env.resolver,
      ANY_FAMILY,
      signal,
    );
    const to = { host: null, ip, port };
    return { flow: await this.#env.dialer.associate(to, { signal, metadata: null }), to };
  }
}

const ANY_FAMILY: Families = { ipVersion: "dual", ipv6: true };

/** As the node has addresses. */
function familiesOf({ addresses }: Settings): Families {
  const [v4, v6] = [4, 16].map((bytes) => addresses.some((address) => address.bytes.length === bytes));
  return { ipVersion: v4 === true ? "dual" : "ipv6", ipv6: v6 === true };
}
