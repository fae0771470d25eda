/** How the core's own connections (DNS, downloads) leave: they are asked for before the outbounds exist. */
import type { NameserverOptions } from "#core/dns-options.ts";
import { DialError } from "#core/errors.ts";
import { MOST_INTERFACE_NAME_BYTES } from "#core/fields.ts";
import type { Dialer, Outbound } from "#core/outbound.ts";
import type { Resolver } from "#core/resolver.ts";
import { dialOf, type Router } from "#core/router.ts";
import type { Destination, Metadata, Network } from "#core/session.ts";
import type { Exit } from "#dns/upstream/upstream.ts";
import { openDirectDialer, type DirectDialerOptions } from "#net/dial/direct-dialer.ts";
import { ANY_V4 } from "#net/address/ip.ts";
import { randomUUID } from "node:crypto";

export interface CoreDialerParts {
  readonly outbounds: ReadonlyMap<string, Outbound>;
  readonly router: Router;
}

/** Upstream servers are dialled by address; a name here is a fault of ours, not a reason to ask the system. */
const LITERAL_ONLY: Resolver = {
  lookup: (host) => Promise.reject(new DialError("resolve", `${host}: only addresses can be dialled here`)),
};

export class CoreDialers {
  readonly #common: Omit<DirectDialerOptions, "resolver">;
  readonly #direct: Exit;
  readonly #byRules: Exit;
  readonly #interfaces = new Map<string, Exit>();
  #parts: CoreDialerParts | null = null;

  /** Throws `ConfigError` where sockets cannot be marked or bound as the configuration asks. */
  constructor(common: Omit<DirectDialerOptions, "resolver">) {
    this.#common = common;
    this.#direct = { kind: "direct", dialer: openDirectDialer({ ...common, resolver: LITERAL_ONLY }) };
    this.#byRules = { kind: "rules", dialer: this.#routed() };
  }

  /** From now on names of proxies and the rules can be followed. */
  bind(parts: CoreDialerParts): void {
    this.#parts = parts;
  }

  for({ exit, followRules }: Pick<NameserverOptions, "exit" | "followRules">): Exit {
    if (followRules) return this.#byRules;
    if (exit === null) return this.#direct;
    const outbound = this.#ready().outbounds.get(exit);
    if (outbound === undefined) return this.#throughInterface(exit);
    return { dialer: outbound, kind: outbound.type === "Direct" ? "direct" : "proxy" };
  }

  /** For downloads: a proxy or a group by name, "" as the rules say. A name that does not exist fails the dial. */
  through(name: string): Dialer {
    if (name === "") return this.#byRules.dialer;
    const found = (): Outbound => {
      const outbound = this.#ready().outbounds.get(name);
      if (outbound === undefined) throw new DialError("failed", `proxy ${name} not found`);
      return outbound;
    };
    return {
      connect: async (destination, context) => found().connect(destination, context),
      associate: async (destination, context) => found().associate(destination, context),
    };
  }

  #ready(): CoreDialerParts {
    if (this.#parts === null)
      throw new DialError("failed", "asked for a proxy before the start was complete");
    return this.#parts;
  }

  #throughInterface(name: string): Exit {
    const known = this.#interfaces.get(name);
    if (known !== undefined) return known;
    if (Buffer.byteLength(name) > MOST_INTERFACE_NAME_BYTES)
      throw new DialError("failed", `${name} is neither a proxy nor an interface`);
    const dialer = openDirectDialer({ ...this.#common, resolver: LITERAL_ONLY, interfaceName: name });
    const made: Exit = { kind: "direct", dialer };
    this.#interfaces.set(name, made);
    return made;
  }

  #routed(): Dialer {
    const decide = async (network: Network, destination: Destination, signal: AbortSignal) =>
      this.#ready().router.route(innerMetadata(network, destination), signal);
    return {
      connect: async (destination, context) => {
        const decision = await decide("tcp", destination, context.signal);
        return decision.outbound.connect(dialOf(decision), context);
      },
      associate: async (destination, context) => {
        const decision = await decide("udp", destination, context.signal);
        return decision.outbound.associate(dialOf(decision), context);
      },
    };
  }
}

/** The metadata of a connection of the core itself, as rules see it. */
function innerMetadata(network: Network, destination: Destination): Metadata {
  const nowhere = { ip: ANY_V4, port: 0 };
  return {
    id: randomUUID(),
    network,
    source: nowhere,
    destination,
    inbound: { name: "", type: "Inner", user: null, local: nowhere, ruleList: null, target: null },
    dscp: null,
    acceptedAtMs: Date.now(),
  };
}
