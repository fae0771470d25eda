/** What a TUN demands of every socket that leaves: the mark or the device without which it would be captured again. */
import { DialError } from "#core/errors.ts";
import type { DialTemplate } from "#core/dial-plan.ts";
import type { Ip } from "#core/session.ts";
import { isLoopback } from "#net/address/ip.ts";
import { openSockets } from "#platform/portable.ts";
import type { SocketMaker, SocketOptions } from "#platform/socket-maker.ts";

export interface Demand {
  /** SO_MARK, over whatever else is configured; 0: none is demanded. */
  readonly routingMark: number;
  /**
   * SO_BINDTODEVICE where nothing else is configured; empty: none is demanded; null: one is, and there is none. Asked at
   * every dial: the default route may move.
   */
  interfaceName(): string | null;
  /** Where questions would come back to our own DNS service. */
  readonly dnsAddresses: readonly Ip[];
}

/** Owned by the host; a running TUN sets its requirements, and every dial follows them. */
export class Egress {
  readonly #demands = new Set<Demand>();
  readonly #onChange: () => void;

  /** `onChange` is called when other things are demanded than before. */
  constructor(onChange: () => void = () => {}) {
    this.#onChange = onChange;
  }

  /** Until it is disposed of. */
  demand(demand: Demand): Disposable {
    this.#demands.add(demand);
    this.#onChange();
    return {
      [Symbol.dispose]: () => {
        this.#demands.delete(demand);
        this.#onChange();
      },
    };
  }

  /** What `interfaceName` of a demand answers has changed. */
  interfaceChanged(): void {
    this.#onChange();
  }

  /** 0: none. */
  get routingMark(): number {
    for (const { routingMark } of this.#demands) if (routingMark !== 0) return routingMark;
    return 0;
  }

  /** See `Demand.dnsAddresses`. */
  get dnsAddresses(): ReadonlySet<Ip> {
    return new Set([...this.#demands].flatMap(({ dnsAddresses }) => dnsAddresses));
  }

  /** See `Demand.interfaceName`. */
  get interfaceName(): string | null {
    for (const demand of this.#demands) {
      const name = demand.interfaceName();
      if (name !== "") return name;
    }
    return "";
  }
}

/** For sockets that nothing else is configured for; null: none can leave now. */
export function demandedOptions({ routingMark, interfaceName }: Egress): SocketOptions | null {
  return interfaceName === null ? null : { routingMark, interfaceName };
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
    const options = this.optionsFor(destination);
    if (options === this.#options) return this.#plain;
    if (options !== this.#last) {
      this.#last = options;
      this.#made = openSockets(options);
    }
    return this.#made;
  }

  /** What sockets have until other things are demanded; null: none can leave now. */
  get template(): (SocketOptions & Pick<DialTemplate, "loopback">) | null {
    const demanded = this.#egress === null ? this.#options : this.#withDemanded(this.#egress);
    return demanded && { ...demanded, loopback: demanded === this.#options };
  }

  /** What `for` sets, as long as it is the same the same object. Throws `DialError`. */
  optionsFor(destination: Ip | null): SocketOptions {
    if (this.#egress === null || (destination !== null && isLoopback(destination))) return this.#options;
    const options = this.#withDemanded(this.#egress);
    if (options === null)
      throw new DialError("unreachable", "auto-detect-interface: there is no default route now");
    return options;
  }

  #withDemanded(egress: Egress): SocketOptions | null {
    const routingMark = egress.routingMark || this.#options.routingMark;
    const interfaceName = this.#options.interfaceName || egress.interfaceName;
    if (interfaceName === null) return null;
    for (const known of [this.#options, this.#last])
      if (routingMark === known.routingMark && interfaceName === known.interfaceName) return known;
    return { routingMark, interfaceName };
  }
}
