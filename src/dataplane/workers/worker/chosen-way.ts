/** Where a connection goes and to which address it is dialled, as far as a worker can tell. */
import type { AddressOrigin, DialTemplate, NodeTemplate } from "#core/dial-plan.ts";
import type { Destination, Ip } from "#core/session.ts";
import type { DecisionData } from "#dataplane/workers/shared/decision-data.ts";
import type { KnownNames } from "#net/address/known-names.ts";
import type { NamedAddresses } from "#net/address/named-addresses.ts";
import type { FoundRule } from "#router/tables/decide.ts";

/** An address to dial. */
export interface Reached {
  readonly ip: Ip;
  readonly port: number;
  /** There is no other to try. */
  readonly isOnly: boolean;
}

/** The address of a destination; null: none was needed. */
interface Seen {
  readonly ip: Ip | null;
  readonly from: AddressOrigin;
}

export interface Chosen {
  readonly found: FoundRule;
  readonly way: DialTemplate;
  readonly to: Reached;
  readonly seen: Seen;
  /** What a node is asked for; of use only where the way leads through one. */
  readonly wants: Destination;
}

/** `ip` null: it is not known yet, and `lookUp` is called where rules ask for it. Null: the tables cannot tell. */
export type FindRule = (ip: Ip | null, lookUp?: () => Ip | null) => FoundRule | null;

interface ChosenBy {
  readonly data: Pick<DecisionData, "ways" | "names">;
  readonly names: KnownNames | null;
  readonly named: NamedAddresses | null;
}

/** Null: the main thread has to decide. */
export function choose(wants: Destination, by: ChosenBy, find: FindRule): Chosen | null {
  const { host, ip, port } = wants;
  if (host !== null) return ip === null ? byName({ ...wants, host }, by, find) : null;
  if (ip === null || by.named?.mayHave(ip) === true) return null;
  return along(find(ip), by, wants, { ip, from: "client" }, () => ({ ip, port, isOnly: true }));
}

/** As the main thread does: by what the hosts table has for it; else by rules first, then by its address for DIRECT. */
function byName(wants: Destination & { readonly host: string }, by: ChosenBy, find: FindRule): Chosen | null {
  const { host, port } = wants;
  const { names, data } = by;
  if (names === null || data.names === null) return null;
  const nowMs = Date.now();
  const pinned = names.pinned(host, nowMs);
  if (pinned !== null) {
    const seen = { ip: pinned, from: "hosts" } as const;
    const direct = (): Reached => ({ ip: pinned, port, isOnly: true });
    return along(find(pinned), by, { host: null, ip: pinned, port }, seen, direct);
  }
  const { forRules } = data.names;
  let ip: Ip | null = null; // by rules
  const lookUp = (): Ip | null => {
    ip = forRules === null ? null : (names.addressOf(host, forRules, nowMs)?.ip ?? null);
    return ip;
  };
  const found = find(null, lookUp);
  const seen: Seen = { ip, from: ip === null ? "dial" : "rules" };
  const chosen = along(found, by, wants, seen, (way) => {
    const known = way.names === null ? null : names.addressOf(host, way.names, nowMs);
    // The main thread is told of one address: where rules see another than the one to dial, it decides.
    return known === null || (ip !== null && ip !== known.ip) ? null : { ...known, port };
  });
  // An address is known of no name that the hosts table may have; a node asks for none.
  const isPlain = chosen === null || chosen.way.node === undefined || names.isUnpinned(host, nowMs);
  return isPlain ? chosen : null;
}

function along(
  found: FoundRule | null,
  by: ChosenBy,
  wants: Destination,
  seen: Seen,
  direct: (way: DialTemplate) => Reached | null,
): Chosen | null {
  const way = found === null ? null : (by.data.ways[found.target + 1] ?? null);
  if (found === null || way === null) return null;
  const to = way.node === undefined ? direct(way) : serverOf(way, way.node, by);
  return to === null ? null : { found, way, to, seen, wants };
}

function serverOf(way: DialTemplate, { server }: NodeTemplate, { names }: ChosenBy): Reached | null {
  const { host, ip, port } = server;
  if (ip !== null) return { ip, port, isOnly: true };
  const known =
    host === null || names === null || way.names === null
      ? null
      : names.addressOf(host, way.names, Date.now());
  return known && { ...known, port };
}
