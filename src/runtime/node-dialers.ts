/** What nodes reach their servers by. */
import type { Config, ProxyConfig } from "#config/config.ts";
import type { DialPlan } from "#core/dial-plan.ts";
import { asDialError, atNode, DialError } from "#core/errors.ts";
import { isGroup, type Dialer, type Outbound } from "#core/outbound.ts";
import { openDirectDialer, type DirectDialerOptions } from "#net/dial/direct-dialer.ts";
import type { Resolver } from "#core/resolver.ts";
import type { OutboundsEnv } from "./outbounds-env.ts";

/** Makes the dialers that reach servers: kernel sockets with a node's own settings, or through another outbound. */
export class NodeDialers {
  readonly direct: Dialer;
  readonly #config: Config;
  readonly #env: OutboundsEnv;
  readonly #all: ReadonlyMap<string, Outbound>;
  readonly #configOf: (node: Outbound) => ProxyConfig | null;

  /** `configOf` answers with null for what stands in no file and no provider. */
  constructor(
    config: Config,
    env: OutboundsEnv,
    all: ReadonlyMap<string, Outbound>,
    configOf: (node: Outbound) => ProxyConfig | null,
  ) {
    this.#config = config;
    this.#env = env;
    this.#all = all;
    this.#configOf = configOf;
    this.direct = openDirectDialer(this.#directOptions);
  }

  for(proxy: ProxyConfig): Dialer {
    const { name, type, interfaceName, routingMark, ipVersion, dialerProxy } = proxy;
    if (dialerProxy !== null) return this.#through(dialerProxy, proxy);
    const common = type === "direct" ? this.#directOptions : this.#options(this.#env.proxyResolver);
    return openDirectDialer({
      ...common,
      ...(type === "direct" ? {} : { owner: name }),
      interfaceName: interfaceName || (common.interfaceName ?? ""),
      routingMark: routingMark || (common.routingMark ?? 0),
      ipVersion,
    });
  }

  /** With `direct-nameserver` an address that the main resolver found says nothing of where DIRECT goes. */
  get #directOptions(): DirectDialerOptions {
    const { directResolver, resolver } = this.#env;
    return { ...this.#options(directResolver), resolvesAnew: directResolver !== resolver };
  }

  #options(resolver: Resolver): DirectDialerOptions {
    const { general } = this.#config;
    return {
      resolver,
      interfaceName: general.interfaceName,
      routingMark: general.routingMark,
      egress: this.#env.egress,
      selfDials: this.#env.selfDials,
      tcpConcurrent: general.tcpConcurrent,
      ipv6: general.ipv6,
      keepAlive: general.keepAlive,
    };
  }

  /** Looked up at the dial, so that the order in which proxies and groups are made does not matter. */
  #through(target: string, user: ProxyConfig): Dialer {
    const outbound = (): Outbound => {
      const found = this.#all.get(target);
      if (found === undefined)
        throw new DialError("failed", `${user.name}: its dialer-proxy ${target} does not exist`);
      if (this.#leadsBack(found, user, new Set()))
        throw new DialError("failed", `${user.name}: its dialer-proxy ${target} leads back to it`);
      return found;
    };
    return {
      connect: async (destination, context) => outbound().connect(destination, context),
      associate: async (destination, context) => outbound().associate(destination, context),
    };
  }

  /** Would what the groups on the way pick now come back to the node? Such a dial would never end. */
  #leadsBack(from: Outbound, user: ProxyConfig, seen: Set<Outbound>): boolean {
    if (seen.has(from)) return false;
    seen.add(from);
    if (isGroup(from)) {
      const takesAny = from.spreads === true || from.type === "Relay";
      const next = takesAny ? from.members : [from.pick(null)];
      return next.some((member) => this.#leadsBack(member, user, seen));
    }
    const config = this.#configOf(from);
    if (config === user) return true;
    const dialer = this.#all.get(config?.dialerProxy ?? "");
    return dialer !== undefined && this.#leadsBack(dialer, user, seen);
  }
}

const toNode = (plan: DialPlan | null): DialPlan | null => plan && { ...plan, isOfNode: true };

/**
 * Dials a node's server, which the configuration names: the limits on destinations of clients do not apply. A failure
 * here happened before the node was reached, which clients are told in other words.
 */
export function toServer(dialer: Dialer): Dialer {
  const marked = (error: unknown): never => {
    throw atNode(asDialError(error, "the node"));
  };
  return {
    connect: (destination, context) => dialer.connect(destination, { ...context, reach: null }).catch(marked),
    plain(destination, _reach, signal) {
      const plan = dialer.plain?.(destination, null, signal) ?? null;
      return plan instanceof Promise ? plan.then(toNode, marked) : toNode(plan);
    },
    template: () => dialer.template?.() ?? null,
    associate: (destination, context) =>
      dialer.associate(destination, { ...context, reach: null }).catch(marked),
  };
}
