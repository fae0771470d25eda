/**
 * Finds connections that we made ourselves and that came back to us: a captured connection that is an open one of
 * DIRECT would loop for ever (transparent-proxy.md §8.4, kernel-direct.md §5). The source alone does not identify it:
 * connections to different servers share local ports, and a program of this machine must not be refused for a port of
 * ours. Nor do both ends when ours is bound to a device: the kernel may give the same ends to an unbound socket.
 */
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { DialError } from "#core/errors.ts";
import { descriptorOf } from "#core/handover.ts";
import type { WorkerConnection } from "#core/accepted.ts";
import type { Decision } from "#core/router.ts";
import type { DatagramFlow, Endpoint, Ip, Metadata } from "#core/session.ts";
import { parseIp } from "#net/address/ip.ts";
import { ForeignAddresses, ownAddresses, RecentOwnAddresses } from "#net/address/own-address.ts";
import { inodeOf } from "#platform/process.ts";
import type { OtherSocket } from "#platform/linux/other-socket.ts";
import type { FoundDial } from "./decision-source.ts";
import { connectionName, DialledNames } from "./dialled-names.ts";

/** Inbounds that connections come to without having asked for them. */
export const TRANSPARENT: ReadonlySet<string> = new Set(["Redir", "TProxy", "Tun"]);

export interface LoopDetectorEnv {
  /** Called once, when everything that is dialled has to be noted from now on. */
  readonly onArmed?: () => void;
  /** May this be an address of this machine? Absent: those of interfaces that carry something are. */
  readonly mayBeOwn?: (ip: Ip) => boolean;
  /** What workers have decided, and dial or have dialled between these two; null: nothing. */
  readonly findDecided?: (near: Endpoint, to: Endpoint) => FoundDial | null;
}

export class LoopDetector {
  readonly #isAnother: OtherSocket;
  /** The inodes, by name: a thread may take the descriptor over. */
  readonly #streams = new Map<string, number>();
  readonly #flows = new Set<DatagramFlow>();
  readonly #dials = new DialledNames();
  /** Of clients that send datagrams. */
  readonly #own = new RecentOwnAddresses();
  readonly #foreign: ForeignAddresses;
  readonly #env: LoopDetectorEnv;
  /** Until something was captured nothing can come back, and nothing is noted. */
  #armed = false;

  constructor(isAnother: OtherSocket, env: LoopDetectorEnv = {}) {
    this.#isAnother = isAnother;
    this.#env = env;
    this.#foreign = new ForeignAddresses(env.mayBeOwn ?? ((ip) => ownAddresses().includes(ip)));
  }

  get isArmed(): boolean {
    return this.#armed;
  }

  /** To be called before the kernel can bring connections to a listener whose clients workers decide. */
  arm(): void {
    if (this.#armed) return;
    this.#armed = true;
    this.#env.onArmed?.();
  }

  /**
   * To be awaited before `check`. The kernel accepts what comes back while the dial does not know yet that it is done, so
   * a captured connection of this machine waits for the end of the turn.
   */
  beforeCheck({ source, network, inbound }: Metadata): Promise<void> | null {
    if (network !== "tcp" || !TRANSPARENT.has(inbound.type) || this.#foreign.has(source.ip)) return null;
    this.arm();
    return new Promise<void>((resolve) => void setImmediate(resolve));
  }

  /** Throws `DialError` where the session is one of our own. */
  check({ source, network, inbound, destination }: Metadata, { outbound }: Decision): void {
    if (!TRANSPARENT.has(inbound.type)) return;
    this.arm();
    if (outbound.type !== "Direct") return;
    const { ip, port } = destination;
    const own =
      network === "tcp" ? ip !== null && this.#isOwnStream(source, { ip, port }) : this.#isOwnPort(source);
    if (own) throw new DialError("aborted", `a loop: ${source.ip} port ${source.port} is a socket of DIRECT`);
  }

  /** Notes what DIRECT has opened, until it is disposed of. */
  watch({ outbound }: Decision, opened: Duplex | DatagramFlow): Disposable | null {
    if (!this.#armed || outbound.type !== "Direct") return null;
    if (opened instanceof Socket) {
      const name = nameOf(opened);
      if (name === null) return null; // it has ended already
      const inode = inodeOf(descriptorOf(opened));
      this.#streams.set(name, inode);
      // Once its socket is gone the kernel may give the same ends to another one of ours.
      const end = (): boolean => this.#streams.get(name) === inode && this.#streams.delete(name);
      return { [Symbol.dispose]: () => void end() };
    }
    if (!("localPorts" in opened)) return null;
    this.#flows.add(opened);
    return { [Symbol.dispose]: () => void this.#flows.delete(opened) };
  }

  /** Registers a client for which a worker is about to dial `to`, until it is disposed of. */
  dials(
    metadata: Metadata,
    { outbound }: Decision,
    client: WorkerConnection,
    to: Endpoint,
  ): Disposable | null {
    const cause = { metadata, isDirect: outbound.type === "Direct" };
    return this.#armed ? this.#dials.add(client, to, cause) : null;
  }

  /** The session for whose client a worker has made this one; null: it is none of a worker's, or that is not known. */
  madeFor({ source, network, inbound, destination: { ip, port } }: Metadata): Metadata | null {
    if (!this.#armed || network !== "tcp" || ip === null || !TRANSPARENT.has(inbound.type)) return null;
    return this.#foreign.has(source.ip) ? null : (this.#dialOf(source, { ip, port })?.metadata ?? null);
  }

  #isOwnStream(source: Endpoint, to: Endpoint): boolean {
    const inode = this.#streams.get(connectionName(source, to));
    if (inode !== undefined && !this.#isAnother(source, to, inode)) return true;
    if (this.#foreign.has(source.ip)) return false;
    const dial = this.#dialOf(source, to);
    return dial?.isDirect === true && !this.#isAnother(source, to, inodeOf(dial.descriptor));
  }

  /** Of a worker. */
  #dialOf(near: Endpoint, to: Endpoint): FoundDial | null {
    return this.#dials.find(near, to) ?? this.#env.findDecided?.(near, to) ?? null;
  }

  /**
   * Ports of the machine's own addresses only: a client of the LAN may use the same number. So the flows, of which there
   * may be thousands, are not looked through for such a client.
   */
  #isOwnPort({ ip, port }: Endpoint): boolean {
    if (!this.#own.has(ip)) return false;
    for (const { localPorts } of this.#flows) if (localPorts?.includes(port) === true) return true;
    return false;
  }
}

function nameOf({ localAddress, localPort, remoteAddress, remotePort }: Socket): string | null {
  const [near, far] = [parseIp(localAddress ?? ""), parseIp(remoteAddress ?? "")];
  if (near === null || far === null || localPort === undefined || remotePort === undefined) return null;
  return connectionName({ ip: near, port: localPort }, { ip: far, port: remotePort });
}
