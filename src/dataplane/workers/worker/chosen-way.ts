/** Where a connection goes and to which address it is dialled, as far as a worker can tell. */
import type { AddressOrigin, DialTemplate } from "#core/dial-plan.ts";
import type { Destination, Ip } from "#core/session.ts";
import type { DecisionData } from "#dataplane/workers/shared/decision-data.ts";
import type { KnownAddress, KnownNames } from "#net/address/known-names.ts";
import type { NamedAddresses } from "#net/address/named-addresses.ts";
import type { FoundRule } from "#router/tables/decide.ts";

/** An address to dial. */
export interface Reached extends KnownAddress {
  readonly from: AddressOrigin;
}

export interface Chosen {
  readonly found: FoundRule;
  readonly way: DialTemplate;
  readonly to: Reached;
}

/** `ip` null: it is not known yet, and `lookUp` is called where rules ask for it. Null: the tables cannot tell. */
export type FindRule = (ip: Ip | null, lookUp?: () => Ip | null) => FoundRule | null;

interface ChosenBy {
  readonly data: Pick<DecisionData, "ways" | "names">;
  readonly names: KnownNames | null;
  readonly named: NamedAddresses | null;
}

/** Null: the main thread has to decide. */
export function choose({ host, ip }: Destination, by: ChosenBy, find: FindRule): Chosen | null {
  if (host !== null) return ip === null ? byName(host, by, find) : null;
  if (ip === null || by.named?.mayHave(ip) === true) return null;
  return along(find(ip), by, () => ({ ip, isOnly: true, from: "client" }));
}

/** As the main thread does: by what the hosts table has for it; else by rules first, then by its address for DIRECT. */
function byName(host: string, by: ChosenBy, find: FindRule): Chosen | null {
  const { names, data } = by;
  if (names === null || data.names === null) return null;
  const nowMs = Date.now();
  const pinned = names.pinned(host, nowMs);
  if (pinned !== null) return along(find(pinned), by, () => ({ ip: pinned, isOnly: true, from: "hosts" }));
  const { forRules } = data.names;
  let seen: Ip | null = null; // by rules
  const lookUp = (): Ip | null => {
    seen = forRules === null ? null : (names.addressOf(host, forRules, nowMs)?.ip ?? null);
    return seen;
  };
  return along(find(null, lookUp), by, (way) => {
    const known = way.names === null ? null : names.addressOf(host, way.names, nowMs);
    // The main thread is told of one address: where rules see another than the one to dial, it decides.
    if (known === null || (seen !== null && seen !== known.ip)) return null;
    return { ...known, from: seen === null ? "dial" : "rules" };
  });
}

function along(
  found: FoundRule | null,
  { data }: ChosenBy,
  addressBy: (way: DialTemplate) => Reached | null,
): Chosen | null {
  const way = found === null ? null : (data.ways[found.target + 1] ?? null);
  const to = way === null ? null : addressBy(way);
  return found === null || way === null || to === null ? null : { found, way, to };
}
