import { ConfigError, listenFault } from "#core/errors.ts";
import { endpointText, type Endpoint, type Ip } from "#core/session.ts";
import type { ListenOptions } from "#core/inbound.ts";
import type { DatagramListener, TransparentSocket } from "#core/sockets.ts";
import type { KeepAlive } from "#net/dial/keep-alive.ts";
import { probesOf } from "#net/dial/keep-alive.ts";
import type { ListenerContext } from "#net/listen/accept.ts";
import type { Lease } from "#net/listen/lease.ts";
import type { SocketPool } from "#net/listen/socket-pool.ts";
import type { ListenAsk } from "#net/listen/listen-ask.ts";
import { makeTransparent } from "#platform/transparent.ts";

export interface LeaseAsk {
  readonly owner: string;
  readonly hosts: readonly Ip[];
  readonly ports: readonly number[];
  readonly configure?: (fd: number) => void;
  /** As of `ListenAsk`. */
  readonly servesDns?: boolean;
  /** What the listeners of this configuration have taken so far; the pool would let two of them share a socket. */
  readonly claims: Set<string>;
}

/** The shares of one inbound in the process's listening sockets. Nothing arrives before `activate`. */
export class LeaseBook implements AsyncDisposable {
  readonly #pool: SocketPool;
  readonly #ask: LeaseAsk;
  readonly #leases: Lease[] = [];
  readonly #claimed: string[] = [];

  constructor(pool: SocketPool, ask: LeaseAsk) {
    this.#pool = pool;
    this.#ask = ask;
  }

  /** `keepAlive` absent: connections are not probed. */
  listenTcp(
    options: ListenOptions & { readonly keepAlive?: KeepAlive; readonly context?: ListenerContext },
  ): Promise<readonly Endpoint[]> {
    const { transparent = false, keepAlive, onAccepted } = options;
    const probes = keepAlive === undefined ? null : probesOf(keepAlive);
    return this.#all("tcp", async (ask) => {
      const configure = (fd: number): void => {
        ask.configure?.(fd);
        if (transparent) makeTransparent(fd);
      };
      // Nothing arrives before `activate`, and so before the lease is there.
      const lease = await this.#pool.leaseTcp(
        { ...ask, configure },
        { ...options, probes, onAccepted: (connection) => onAccepted(connection, lease.endpoint) },
      );
      return lease;
    });
  }

  listenUdp(on: (socket: DatagramListener) => void): Promise<readonly Endpoint[]> {
    return this.#all("udp", (ask) => this.#pool.leaseUdp(ask, on));
  }

  listenTransparentUdp(on: (socket: TransparentSocket) => void): Promise<readonly Endpoint[]> {
    return this.#all("udp", (ask) => this.#pool.leaseTransparentUdp(ask, on));
  }

  /** For the next configuration, where this listener stays. Throws `ConfigError` where another has the address already. */
  claimFor(claims: Set<string>): void {
    for (const claim of this.#claimed) take(claims, claim);
  }

  activate(): void {
    for (const lease of this.#leases) lease.activate();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#leases.splice(0).map((lease) => lease[Symbol.asyncDispose]()));
  }

  async #all(network: "tcp" | "udp", open: (ask: ListenAsk) => Promise<Lease>): Promise<readonly Endpoint[]> {
    const { owner, hosts, ports, configure, servesDns = false, claims } = this.#ask;
    const endpoints: Endpoint[] = [];
    for (const ip of hosts)
      for (const port of ports) {
        const taken = this.#sibling(ip, port);
        if (port !== 0) {
          const claim = `${network} ${endpointText({ ip, port })}`;
          take(claims, claim);
          this.#claimed.push(claim);
        }
        const lease = await open({
          ip,
          port: taken ?? port,
          owner,
          servesDns,
          ...(configure ? { configure } : {}),
        }).catch((error) => {
          const where = `${network} ${endpointText({ ip, port })}`;
          throw new ConfigError(`cannot listen on ${where}: ${listenFault(error)}`, { cause: error });
        });
        this.#leases.push(lease);
        endpoints.push(lease.endpoint);
      }
    return endpoints;
  }

  /** Port 0 gives TCP and UDP of one listener the same number: clients expect it of SOCKS and DNS. */
  #sibling(ip: Ip, port: number): number | null {
    if (port !== 0) return null;
    return this.#leases.find(({ endpoint }) => endpoint.ip === ip)?.endpoint.port ?? null;
  }
}

function take(claims: Set<string>, claim: string): void {
  if (claims.has(claim))
    throw new ConfigError(`cannot listen on ${claim}: another listener of this configuration does`);
  claims.add(claim);
}
