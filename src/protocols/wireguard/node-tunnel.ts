import { ABORTED, asDialError, DialError } from "#core/errors.ts";
import type { OutboundEnv } from "#core/outbound.ts";
import type { Families } from "#net/address/families.ts";
import { toDestination } from "#net/address/ip.ts";
import { itemAt } from "#lib/at.ts";
import { openInnerNetwork } from "./inner-network.ts";
import type { PeerWay } from "./peer-link.ts";
import type { Settings } from "./settings.ts";
import { Tunnel } from "./tunnel.ts";
import { type TunnelLease, Tunnels } from "./tunnels.ts";

/** For what carries the datagrams to be dialled. */
const WAY_MS = 5_000;

/** The tunnel of a node: taken at its first dial, left when the node is disposed of. */
export class NodeTunnel implements AsyncDisposable {
  /** Those of its own addresses. */
  readonly families: Families;
  readonly #env: OutboundEnv;
  readonly #settings: Settings;
  readonly #tunnels: Tunnels;
  #lease: Promise<TunnelLease> | null = null;
  #closed = false;

  constructor(settings: Settings, env: OutboundEnv) {
    this.#env = env;
    this.#settings = settings;
    this.#tunnels = env.memory?.of(Tunnels) ?? new Tunnels();
    const has = (bytes: number) => settings.addresses.some((address) => address.bytes.length === bytes);
    this.families = { ipVersion: has(4) ? "dual" : "ipv6", ipv6: has(16) };
  }

  /** Rejects with `DialError`. */
  async get(): Promise<Tunnel> {
    const { name, way = "" } = this.#env;
    if (this.#closed) throw new DialError("aborted", `${name}: ${ABORTED.message}`);
    const key = JSON.stringify([way, this.#settings.identity]);
    this.#lease ??= this.#tunnels.take(
      key,
      (peer) => this.#openWay(peer),
      () => this.#make(),
    );
    try {
      return (await this.#lease).tunnel;
    } catch (error) {
      this.#lease = null; // the next dial tries again
      const { message } = asDialError(error, "the tunnel");
      throw new DialError("unsupported", `${name}: ${message}`, { cause: error });
    }
  }

  async #make(): Promise<Tunnel> {
    const { own, mtuBytes, addresses, persistentMs, peers } = this.#settings;
    const routes = peers.flatMap(({ allowed }) => allowed);
    const network = openInnerNetwork({ mtuBytes, addresses, routes });
    const { nowMs } = this.#env;
    const settings = peers.map((peer) => ({ ...peer, persistentMs, label: `${peer.server}:${peer.port}` }));
    return new Tunnel(network, { own, mtuBytes, nowMs, peers: settings }, (peer) => this.#openWay(peer));
  }

  async #openWay(peer: number): Promise<PeerWay> {
    const { server, port } = itemAt(this.#settings.peers, peer);
    const to = toDestination(server, port);
    const signal = AbortSignal.timeout(WAY_MS);
    return { flow: await this.#env.dialer.associate(to, { signal, metadata: null }), to };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    const lease = await this.#lease?.catch(() => null);
    this.#lease = null;
    await lease?.[Symbol.asyncDispose]();
  }
}
