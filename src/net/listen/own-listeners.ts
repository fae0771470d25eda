import type { Endpoint, Ip, Network } from "#core/session.ts";
import { ANY_V4, ANY_V6, LOOPBACK_V4, LOOPBACK_V6 } from "#net/address/ip.ts";
import { RecentOwnAddresses } from "#net/address/own-address.ts";

interface Listening {
  readonly ip: Ip;
  readonly servesDns: boolean;
}

/** The endpoints at which this process listens, by network and port. The pool of sockets keeps it up to date. */
export class OwnListeners {
  readonly #own = new RecentOwnAddresses();
  readonly #ports: Readonly<Record<Network, Map<number, Listening[]>>> = { tcp: new Map(), udp: new Map() };
  #controller: readonly Endpoint[] = [];
  readonly #onChange: () => void;

  /** `onChange` is called when there is another endpoint, or one less. */
  constructor(onChange: () => void = () => {}) {
    this.#onChange = onChange;
  }

  /** The ports of all TCP endpoints, the Controller's with them. */
  get tcpPorts(): ReadonlySet<number> {
    return new Set([...this.#ports.tcp.keys(), ...this.#controller.map(({ port }) => port)]);
  }

  add(network: Network, { ip, port }: Endpoint, servesDns: boolean): void {
    const all = this.#ports[network];
    all.set(port, [...(all.get(port) ?? []), { ip, servesDns }]);
    this.#onChange();
  }

  remove(network: Network, { ip, port }: Endpoint): void {
    const all = this.#ports[network];
    const others = (all.get(port) ?? []).filter((listening) => listening.ip !== ip);
    if (others.length > 0) all.set(port, others);
    else all.delete(port);
    this.#onChange();
  }

  /** Replaces the endpoints of an earlier call. */
  setController(endpoints: readonly Endpoint[]): void {
    this.#controller = endpoints;
    this.#onChange();
  }

  /** Would a connection or datagram to it come to a listener of `listeners`, `tunnels`, a port key or `dns.listen`? */
  has(network: Network, ip: Ip, port: number): boolean {
    const all = this.#ports[network].get(port);
    return all !== undefined && all.some((one) => this.#isAt(one.ip, ip));
  }

  /**
   * The same for endpoints that are for local clients only: the Controller, and listeners other than the DNS server.
   */
  isGuarded(network: Network, ip: Ip, port: number): boolean {
    const all = this.#ports[network].get(port);
    if (all !== undefined && all.some((one) => !one.servesDns && this.#isAt(one.ip, ip))) return true;
    return network === "tcp" && this.#controller.some((at) => at.port === port && this.#isAt(at.ip, ip));
  }

  /** Is it an address of this machine? */
  isOwnAddress(ip: Ip): boolean {
    return this.#own.has(ip);
  }

  #isAt(listening: Ip, asked: Ip): boolean {
    const dialled = asked === ANY_V4 ? LOOPBACK_V4 : asked === ANY_V6 ? LOOPBACK_V6 : asked; // as the kernel does
    if (listening === dialled) return true;
    return (listening === ANY_V4 || listening === ANY_V6) && this.#own.has(dialled);
  }
}
