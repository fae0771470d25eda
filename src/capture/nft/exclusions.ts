/** What is not captured, in the order of the rules: the block that three of the chains share. */
import type { CapturePlan, Prefix } from "#core/capture.ts";
import { ConfigError } from "#core/errors.ts";
import { braced, numberSet, prefixElements } from "./elements.ts";
import { setNames } from "./names.ts";

export interface ChainKind {
  /** Packets made here, or packets that came in. */
  readonly side: "output" | "prerouting";
  /** Chains of NAT send questions elsewhere, others mark, and those of the guard drop what comes that far. */
  readonly does: "nat" | "mark" | "guard";
}

const FAMILIES = [4, 6] as const;
const KEYWORD = { 4: "ip", 6: "ip6" } as const;

export function exclusions(plan: CapturePlan, kind: ChainKind): readonly string[] {
  return [
    ...(kind.side === "output" ? ownUsers(plan) : devices(plan)),
    ...destinations(plan),
    ...ports(plan),
    ...(kind.does !== "mark" && plan.hijackDns ? hijack(plan, kind) : []),
    ...localDestinations(),
    ...setDestinations(plan),
    ...(plan.options.kernelDirect && kind.does !== "guard" ? learned(plan) : []),
    // A subflow that is redirected alone would break its connection; without an answer a client tries plain TCP.
    ...(kind.does === "nat" ? ["tcp option mptcp exists counter drop"] : []),
  ];
}

function ownUsers({ options: { includeUid, excludeUid } }: CapturePlan): readonly string[] {
  const rules: string[] = [];
  if (includeUid.length > 0) rules.push(`meta skuid != ${numberSet(includeUid)} return`);
  if (excludeUid.length > 0) rules.push(`meta skuid ${numberSet(excludeUid)} return`);
  return rules;
}

function devices({ options }: CapturePlan): readonly string[] {
  const { includeInterface, excludeInterface, includeMac, excludeMac } = options;
  const rules: string[] = [];
  if (includeInterface.length > 0) rules.push(`iifname != ${braced(includeInterface.map(quoted))} return`);
  if (excludeInterface.length > 0) rules.push(`iifname ${braced(excludeInterface.map(quoted))} return`);
  if (includeMac.length > 0)
    rules.push("meta iiftype != ether return", `ether saddr != ${macSet(includeMac, "include")} return`);
  if (excludeMac.length > 0)
    rules.push(`meta iiftype ether ether saddr ${macSet(excludeMac, "exclude")} return`);
  return rules;
}

const DEVICE_NAME = /^[^\s/"\\;{}#\0]{1,15}$/;

/** A device's name as nftables reads it. Throws `ConfigError` for what is none. */
export function quoted(name: string): string {
  if (!DEVICE_NAME.test(name))
    throw new ConfigError(`include-interface and exclude-interface: ${JSON.stringify(name)} names no device`);
  return `"${name.endsWith("*") ? `${name.slice(0, -1)}\\*` : name}"`;
}

const MAC = /^[0-9a-f]{2}([:-][0-9a-f]{2}){5}$/i;

function macSet(addresses: readonly string[], which: string): string {
  const read = addresses.map((address) => {
    if (!MAC.test(address))
      throw new ConfigError(
        `${which}-mac-address: expected an address such as 02:00:5e:00:53:01, got ${JSON.stringify(address)}`,
      );
    return address.replaceAll("-", ":").toLowerCase();
  });
  return braced([...new Set(read)]);
}

/** `route-address` of one family says nothing of the other. */
function destinations({ options }: CapturePlan): readonly string[] {
  const each = (prefixes: readonly Prefix[], operator: string) =>
    FAMILIES.flatMap((family) => {
      const elements = prefixElements(prefixes, family);
      return elements.length === 0 ? [] : [`${KEYWORD[family]} daddr ${operator}${braced(elements)} return`];
    });
  return [...each(options.routeAddress, "!= "), ...each(options.routeExcludeAddress, "")];
}

function ports({ options: { excludeSourcePort, excludeDestinationPort } }: CapturePlan): readonly string[] {
  const rules: string[] = [];
  const some = "meta l4proto { tcp, udp } th";
  if (excludeSourcePort.length > 0) rules.push(`${some} sport ${numberSet(excludeSourcePort)} return`);
  if (excludeDestinationPort.length > 0)
    rules.push(`${some} dport ${numberSet(excludeDestinationPort)} return`);
  return rules;
}

/** Questions of the LAN, also those to the router itself; of the router's own programs those that leave it. */
function hijack({ inet4, inet6, options }: CapturePlan, { side, does }: ChainKind): readonly string[] {
  return FAMILIES.flatMap((family) => {
    const next = (family === 4 ? inet4 : inet6)?.next;
    if (next === undefined) return [];
    const ip = KEYWORD[family];
    const who =
      side === "prerouting"
        ? `${ip} saddr @${setNames(family).local}`
        : `meta nfproto ipv${family} oifname != "lo"`;
    const asked = `${who} meta l4proto { tcp, udp } th dport 53`;
    return does === "guard"
      ? [`${asked} ct mark != ${options.inputMark} counter drop`] // the others are on their way to `next`
      : [`${asked} counter ct mark set ${options.inputMark} dnat ${ip} to ${next}`];
  });
}

/** Beside the networks around us what no proxy can carry: multicast, link-local, neighbour discovery. */
function localDestinations(): readonly string[] {
  return [
    ...FAMILIES.map((family) => `${KEYWORD[family]} daddr @${setNames(family).local} return`),
    "ip daddr { 0.0.0.0, 169.254.0.0/16, 224.0.0.0/4, 255.255.255.255 } return",
    "ip6 daddr { ::, fe80::/10, ff00::/8 } return",
    "icmpv6 type { nd-router-solicit, nd-router-advert, nd-neighbor-solicit, nd-neighbor-advert, nd-redirect } return",
  ];
}

function setDestinations({ routeSet, routeExcludeSet }: CapturePlan): readonly string[] {
  return FAMILIES.flatMap((family) => {
    const ip = KEYWORD[family];
    const { route, routeExclude } = setNames(family);
    return [
      ...(routeSet === null ? [] : [`${ip} daddr != @${route} return`]),
      ...(routeExcludeSet === null ? [] : [`${ip} daddr @${routeExclude} return`]),
    ];
  });
}

/**
 * DNS to a learned address still comes to us. The guard lets past what was found DIRECT while a capture was in force: chains
 * of NAT see the first packet of a flow alone, so that costs the others nothing.
 */
function learned({ options: { outputMark } }: CapturePlan): readonly string[] {
  return FAMILIES.flatMap((family) => {
    const found = `${KEYWORD[family]} daddr @${setNames(family).direct}`;
    return [
      `${found} meta l4proto { tcp, udp } th dport != 53 counter ct mark set ${outputMark} return`,
      `${found} meta l4proto != { tcp, udp } counter ct mark set ${outputMark} return`,
    ];
  });
}
