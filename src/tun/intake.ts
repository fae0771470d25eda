/** What comes out of a TUN's stack becomes sessions, or answers of the DNS service. */
import type { Accept } from "#core/inbound.ts";
import type { Log } from "#core/log.ts";
import type { DnsAnswers } from "#core/outbound.ts";
import type { DatagramFlow, Destination, Endpoint } from "#core/session.ts";
import type { StreamSocket } from "#core/sockets.ts";
import { abortStream } from "#core/stream.ts";
import { connectionEnds, describe, streamSession } from "#net/listen/accept.ts";
import { familyOf, ipFromBytes, socketIp } from "#net/address/ip.ts";
import { applyKeepAlive, type KeepAlive } from "#net/dial/keep-alive.ts";
import { loopsBack } from "#net/address/own-address.ts";
import { openOriginalDestinations, type RawEndpoint } from "#platform/transparent.ts";
import { descriptorOf } from "#core/handover.ts";
import type { Hijack } from "./hijack.ts";
import type { TunSettings } from "./settings.ts";
import type { Stack } from "./stack.ts";

export interface IntakeEnv {
  readonly accept: Accept;
  /** Asked at every question; null: the `dns` section is off. */
  readonly dns: () => DnsAnswers | null;
  readonly keepAlive: () => KeepAlive;
  /** Milliseconds of a clock that never goes back. */
  readonly nowMs: () => number;
  readonly log: Log;
}

export class Intake {
  /** Set before anything can arrive. */
  stack: Stack | null = null;
  readonly #settings: TunSettings;
  readonly #hijack: Hijack;
  readonly #env: IntakeEnv;
  /** Connections whose packets go through the device: they end with it. */
  readonly #natted = new Set<StreamSocket>();
  readonly #originalOf: ((fd: number, family: 4 | 6) => RawEndpoint | null) | null;

  constructor(settings: TunSettings, hijack: Hijack, env: IntakeEnv) {
    this.#settings = settings;
    this.#hijack = hijack;
    this.#env = env;
    this.#originalOf = settings.capture.autoRedirect ? openOriginalDestinations() : null;
  }

  /** A connection that the stack has turned to its listener: its port says whose it is. */
  natted(socket: StreamSocket): void {
    const { remoteAddress = "", remotePort = 0, localPort = 0 } = socket;
    const family = (remoteAddress.includes(":") ? this.stack?.inet6 : this.stack?.inet4) ?? null;
    // Any client may find the listener's port; only the stack comes from the address after the TUN's own.
    const ours = family !== null && socketIp(remoteAddress) === ipFromBytes(family.next);
    const flow = ours ? family.nat.endpointsOf(remotePort) : null;
    if (family === null || flow === null) return abortStream(socket);
    const { nat } = family;
    nat.hold(flow.slot);
    this.#natted.add(socket);
    this.#streams(socket, "Tun", flow.source, flow.destination, localPort, () => {
      this.#natted.delete(socket);
      nat.release(flow.slot, this.#env.nowMs());
    });
  }

  /** A connection that auto-redirect sent here: the kernel knows where it was going. */
  redirected(socket: StreamSocket): void {
    const ends = connectionEnds(socket);
    const original =
      ends === null ? null : (this.#originalOf?.(descriptorOf(socket), familyOf(ends.source.ip)) ?? null);
    if (ends === null || original === null) return abortStream(socket);
    const destination = { ip: ipFromBytes(original.address), port: original.port };
    if (loopsBack({ host: null, ...destination }, ends.local)) return abortStream(socket);
    this.#streams(socket, "Redir", ends.source, destination, ends.local.port, () => {});
  }

  /** A new client socket. */
  datagrams(source: Endpoint, destination: Destination, flow: DatagramFlow): void {
    const place = { source, local: this.#local(source.ip, 0) };
    const asked = { network: "udp", type: "Tun", user: null, destination } as const;
    const metadata = describe(this.#settings, place, asked);
    this.#env.accept({ network: "udp", metadata, flow, idleMs: this.#settings.udpTimeoutMs });
  }

  close(): void {
    for (const socket of this.#natted) socket.destroy();
  }

  #streams(
    socket: StreamSocket,
    type: "Tun" | "Redir",
    source: Endpoint,
    to: Endpoint,
    localPort: number,
    ended: () => void,
  ): void {
    const { accept, dns, keepAlive } = this.#env;
    const service = this.#hijack.takesEndpoint(to.ip, to.port) ? dns() : null;
    if (service !== null) {
      socket.once("close", ended);
      return service.serve(socket);
    }
    applyKeepAlive(socket, keepAlive()); // a client that vanished without a word must not stay for ever
    const destination = { host: null, ...to };
    const place = { source, local: this.#local(source.ip, localPort) };
    const metadata = describe(this.#settings, place, { network: "tcp", type, user: null, destination });
    accept({ ...streamSession(metadata, socket, () => {}), ended }); // a failed dial shows as a close
  }

  /** The TUN's own address of the client's family. */
  #local(client: Endpoint["ip"], port: number): Endpoint {
    const family = familyOf(client);
    const own = this.#settings.addresses.find(({ ip }) => familyOf(ip) === family);
    return { ip: own?.ip ?? client, port };
  }
}
