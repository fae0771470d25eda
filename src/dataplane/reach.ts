/**
 * Keeps clients that are not local from listeners for local programs only: through the proxy their connections would
 * come from this machine itself. A client is local when it comes from an address of this machine.
 */
import type { Reach } from "#core/reach.ts";
import type { Decision } from "#core/router.ts";
import type { Facts, Rule } from "#core/rule.ts";
import type { Ip, Metadata, Network } from "#core/session.ts";
import { familyOf, ipOf } from "#net/address/ip.ts";
import { PRIVATE, THIS_MACHINE } from "#net/address/special-ranges.ts";
import type { OwnListeners } from "#net/listen/own-listeners.ts";
import type { SelfDials } from "#net/dial/self-dials.ts";

/** A rule that is as true of these names no address in particular. */
const ANYWHERE = { 4: ipOf("9.9.9.9"), 6: ipOf("2620:fe::fe") };
/** Rules that name hosts one by one. Lists, key words and patterns match names that other people can register. */
const NAMING = new Set(["DOMAIN", "DOMAIN-SUFFIX"]);

export class ReachGuard {
  readonly #listeners: OwnListeners;
  readonly #selfDials: SelfDials;
  readonly #opensLoopback: boolean;
  readonly #ofLan: Reach;

  /** `opensLoopback`: `allow-loopback-from-lan`. */
  constructor(listeners: OwnListeners, selfDials: SelfDials, opensLoopback: boolean) {
    this.#listeners = listeners;
    this.#selfDials = selfDials;
    this.#opensLoopback = opensLoopback;
    this.#ofLan = { refusal: (network, ip, port) => this.#refusal(network, ip, port) };
  }

  /**
   * To be called once, right before the dial. Null: the client may reach everything. A session that came by a
   * connection of ours is that of the client for which it was opened. Throws `DialError` when it has come round too
   * often.
   */
  of(metadata: Metadata, decision: Decision): Reach | null {
    this.#selfDials.joins(metadata, decision.outbound);
    const { source, inbound } = this.#selfDials.originOf(metadata);
    if (this.#listeners.isOwnAddress(source.ip)) return null;
    if (inbound.isRemote !== true) return this.#opensLoopback ? null : this.#ofLan;
    return {
      refusal: (network, ip, port) =>
        this.#refusal(network, ip, port) ??
        (PRIVATE.holds(ip) && !isNamed(decision, ip)
          ? "a private address, which no rule names for users from elsewhere"
          : null),
    };
  }

  #refusal(network: Network, ip: Ip, port: number): string | null {
    if (this.#opensLoopback) return null;
    if (THIS_MACHINE.holds(ip)) return "an address of this machine only; allow-loopback-from-lan opens it";
    if (this.#listeners.isGuarded(network, ip, port))
      return "a listener of weir's own; allow-loopback-from-lan opens it";
    return null;
  }
}

/** Does the rule that matched name this address, or the name that was resolved to it? */
function isNamed({ rule, facts, destination, sniffedHost }: Decision, ip: Ip): boolean {
  if (rule === null) return false;
  // A sniffed name is the client's claim; only when it was resolved here does the address belong to it.
  const isResolved = sniffedHost === undefined || destination.ip === null;
  if (NAMING.has(rule.type)) return destination.host !== null && isResolved;
  return tellsApart(rule, facts, ip);
}

/** An address rule, alone or inside AND and OR, that is true of this address and not of any. */
function tellsApart({ matcher }: Rule, facts: Facts, ip: Ip): boolean {
  if (!matcher.reads.includes("ip")) return false;
  return (
    matcher.match({ ...facts, ip }) === true &&
    matcher.match({ ...facts, ip: ANYWHERE[familyOf(ip)] }) !== true
  );
}
