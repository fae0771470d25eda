/** `relay`: goes through all its members in order; each reaches its server through the one before it. */
import * as z from "zod";
import { DialError } from "#core/errors.ts";
import { groupKind } from "#core/group.ts";
import type { Dialer, DialContext, Outbound } from "#core/outbound.ts";
import { BOTH_NETWORKS, isGroup, TCP_ONLY, unwrap } from "#core/outbound.ts";
import type { DatagramFlow, Destination, Metadata, Network } from "#core/session.ts";
import { MemberGroup } from "./member-group.ts";
import { itemAt, lastOf } from "#lib/at.ts";

interface Hop {
  readonly node: Outbound;
  /** Whether datagrams may enter it: the node carries them, and no group that picked it has `disable-udp`. */
  readonly udp: boolean;
  /** Why no chain can lead through it; null: one can. */
  readonly fault: string | null;
}

class RelayGroup extends MemberGroup {
  readonly type = "Relay";

  get spreads(): boolean {
    return this.members.some((member) =>
      unwrap(member, null).some((part) => isGroup(part) && part.spreads === true),
    );
  }

  /** A node that rejects stands for the whole chain. DIRECT is no hop; a chain of nothing else is DIRECT. */
  pick(metadata: Metadata | null): Outbound {
    const ways = this.members.map((member) => unwrap(member, metadata));
    const leaves = ways.map((way) => lastOf(way));
    const rejecting = leaves.find(({ rejects }) => rejects === true);
    if (rejecting !== undefined) return rejecting;
    const hops: Hop[] = [];
    for (const way of ways) this.#append(hops, way, metadata, []);
    if (hops.length === 0) return itemAt(leaves, 0);
    const names = ways.flatMap((way) => way.flatMap(({ name, through = [] }) => [...through, name]));
    return new Chain(hops, names, this.env.lines.line(hops.map(({ node }) => node)));
  }

  /**
   * Adds what a member, or a node's own `dialer-proxy`, puts into the chain. `way` leads from it to the node that it
   * picked, `users` are the nodes whose `dialer-proxy` led here.
   */
  #append(
    hops: Hop[],
    way: readonly Outbound[],
    metadata: Metadata | null,
    users: readonly Outbound[],
  ): void {
    const leaf = lastOf(way);
    const isOpen = !way.some((part) => isGroup(part) && part.disablesUdp === true);
    const inner = leaf instanceof Chain ? leaf.hops : [hopOf(leaf)];
    for (const [at, { node, udp, fault }] of inner.entries()) {
      // A `direct` node may choose how the chain leaves here. Behind another node it would lead past that one.
      if (fault === null && isDirect(node) && (hops.length > 0 || this.env.lines.isBuiltIn(node))) continue;
      const dialer = hops.length === 0 ? null : this.env.lines.dialerOf(node);
      const isCircle = users.includes(node);
      if (dialer !== null && !isCircle)
        this.#append(hops, unwrap(dialer, metadata), metadata, [...users, node]);
      hops.push({
        node,
        udp: udp && (isOpen || at < inner.length - 1),
        fault: isCircle ? `the dialer-proxy of ${node.name} leads back to it` : fault,
      });
    }
  }
}

function hopOf(node: Outbound): Hop {
  const { name, networks, inert, passes, rejects } = node;
  const lack = passes === undefined && rejects === undefined ? inert : "nothing can be reached through it";
  return { node, udp: networks.has("udp"), fault: lack === undefined ? null : `${name}: ${lack}` };
}

function isDirect({ type }: Outbound): boolean {
  return type === "Direct" || type === "Compatible";
}

/** The chain of one session, under the name of its last node. */
class Chain implements Outbound {
  readonly name: string;
  readonly type: string;
  readonly through: readonly string[];
  readonly networks: ReadonlySet<Network>;
  readonly inert?: string;
  readonly hops: readonly Hop[];
  readonly #line: Dialer;

  constructor(hops: readonly Hop[], names: readonly string[], line: Dialer) {
    this.name = lastOf(names);
    this.type = lastOf(hops).node.type;
    this.through = names.slice(0, -1);
    this.networks = carriesUdp(hops) ? BOTH_NETWORKS : TCP_ONLY;
    this.hops = hops;
    this.#line = line;
    const fault = hops.find((hop) => hop.fault !== null)?.fault ?? null;
    if (fault !== null) this.inert = fault;
  }

  async connect(destination: Destination, context: DialContext) {
    this.#refuseFaulty();
    return this.#line.connect(destination, context);
  }

  async associate(destination: Destination, context: DialContext): Promise<DatagramFlow> {
    this.#refuseFaulty();
    return this.#line.associate(destination, context);
  }

  /** The nodes are not its own. */
  async [Symbol.asyncDispose](): Promise<void> {}

  #refuseFaulty(): void {
    if (this.inert !== undefined) throw new DialError("unsupported", `relay: ${this.inert}`);
  }
}

/** From the last node back to the first whose datagrams travel in a stream: all of them have to carry datagrams. */
function carriesUdp(hops: readonly Hop[]): boolean {
  for (const { node, udp } of hops.toReversed()) {
    if (!udp) return false;
    if (node.sendsDatagrams !== true) return true;
  }
  return true;
}

export const relay = groupKind({ type: "relay", apiType: "Relay" }, z.object({}), (_, env) =>
  Promise.resolve(new RelayGroup(env)),
);
