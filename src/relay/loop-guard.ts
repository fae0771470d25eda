/**
 * Finds connections that we made ourselves and that came back to us: a captured one whose source is a live socket of
 * DIRECT would go round for ever (transparent-proxy.md §8.4, kernel-direct.md §5).
 */
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { DialError } from "#core/errors.ts";
import type { HeldClient } from "#core/held.ts";
import type { Decision } from "#core/router.ts";
import type { DatagramFlow, Metadata } from "#core/session.ts";
import { parseIp } from "#net/ip.ts";
import { RecentOwnAddresses } from "#net/own-address.ts";
import { DialledNames } from "./dialled-names.ts";

/** Inbounds that connections come to without having asked for them. */
export const TRANSPARENT: ReadonlySet<string> = new Set(["Redir", "TProxy", "Tun"]);

export class LoopGuard {
  readonly #streams = new Set<string>();
  readonly #flows = new Set<DatagramFlow>();
  readonly #dials = new DialledNames();
  readonly #own = new RecentOwnAddresses();
  /** Until something was captured nothing can come back, and nothing is noted. */
  #armed = false;

  /**
   * To be awaited before `check`. The kernel accepts what comes back while the dial does not know yet that it is done, so
   * a captured connection of this machine waits for the end of the turn.
   */
  beforeCheck({ source, network, inbound }: Metadata): Promise<void> | null {
    if (network !== "tcp" || !TRANSPARENT.has(inbound.type) || !this.#own.has(source.ip)) return null;
    this.#armed = true;
    return new Promise<void>((resolve) => void setImmediate(resolve));
  }

  /** Throws `DialError` where the session is one of our own. */
  check({ source, network, inbound }: Metadata, { outbound }: Decision): void {
    if (!TRANSPARENT.has(inbound.type)) return;
    this.#armed = true;
    if (outbound.type !== "Direct") return;
    const own = network === "tcp" ? this.#isOwnStream(source) : this.#isOwnPort(source);
    if (own) throw new DialError("aborted", `a loop: ${source.ip} port ${source.port} is a socket of DIRECT`);
  }

  /** Notes what DIRECT has opened, until it is disposed of. */
  watch({ outbound }: Decision, opened: Duplex | DatagramFlow): Disposable | null {
    if (!this.#armed || outbound.type !== "Direct") return null;
    if (opened instanceof Socket) {
      const key = `${parseIp(opened.localAddress ?? "")} ${opened.localPort}`;
      this.#streams.add(key);
      return { [Symbol.dispose]: () => void this.#streams.delete(key) };
    }
    if (!("localPorts" in opened)) return null;
    this.#flows.add(opened);
    return { [Symbol.dispose]: () => void this.#flows.delete(opened) };
  }

  /** Notes a client for whom a relay thread is about to dial, until `forget`. */
  dials({ outbound }: Decision, client: HeldClient): void {
    if (this.#armed && outbound.type === "Direct") this.#dials.add(client);
  }

  forget(client: HeldClient): void {
    this.#dials.delete(client);
  }

  #isOwnStream(source: Metadata["source"]): boolean {
    if (this.#streams.has(`${source.ip} ${source.port}`)) return true;
    return this.#own.has(source.ip) && this.#dials.has(source);
  }

  /**
   * Ports of the machine's own addresses only: a client of the LAN may use the same number. So the flows, of which there
   * may be thousands, are not looked through for such a client.
   */
  #isOwnPort({ ip, port }: Metadata["source"]): boolean {
    if (!this.#own.has(ip)) return false;
    for (const { localPorts } of this.#flows) if (localPorts?.includes(port) === true) return true;
    return false;
  }
}
