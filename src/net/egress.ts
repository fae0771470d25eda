/** What a TUN demands of every socket that leaves: the mark or the device without which it would be captured again. */
import { DialError } from "#core/errors.ts";
import type { Ip } from "#core/session.ts";
import { openSockets } from "#platform/portable.ts";
import type { SocketMaker, SocketOptions } from "#platform/socket-maker.ts";

/** Belongs to the host; whoever runs a TUN sets it, and every dial reads it. */
export class Egress {
  /** SO_MARK, over whatever else is configured; 0: none is demanded. */
  routingMark = 0;
  /**
   * SO_BINDTODEVICE where nothing else is configured; empty: none is demanded; null: one is, and there is none. Asked at
   * every dial: the default route may move.
   */
  interfaceName: () => string | null = () => "";
}

/** Makes sockets with the configured options and what the egress demands at that moment. */
export class EgressSockets {
  readonly #options: SocketOptions;
  readonly #egress: Egress | null;
  readonly #plain: SocketMaker | null;
  #last: SocketOptions;
  #made: SocketMaker | null;

  /** Throws `ConfigError` where this system cannot mark or bind sockets as configured. */
  constructor(options: SocketOptions, egress: Egress | null) {
    this.#options = options;
    this.#egress = egress;
    this.#plain = openSockets(options);
    this.#last = options;
    this.#made = this.#plain;
  }

  /** For one destination, or for many of which none is known. Null: ordinary sockets do. Throws `DialError`. */
  for(destination: Ip | null): SocketMaker | null {
    if (this.#egress === null || (destination !== null && isLoopback(destination))) return this.#plain;
    const { routingMark } = this.#egress;
    const interfaceName = this.#options.interfaceName || this.#egress.interfaceName();
    if (interfaceName === null)
      throw new DialError("unreachable", "auto-detect-interface: there is no default route now");
    const wanted = { routingMark: routingMark || this.#options.routingMark, interfaceName };
    if (wanted.routingMark !== this.#last.routingMark || interfaceName !== this.#last.interfaceName) {
      this.#made = openSockets(wanted);
      this.#last = wanted;
    }
    return this.#made;
  }
}

/** Nothing of the machine's own leaves it. */
function isLoopback(ip: Ip): boolean {
  return ip === "::1" || ip.startsWith("127.");
}
