/** From a session to the facts that rules read. */
import type { DnsMode } from "#core/router.ts";
import type { Facts } from "#core/rule.ts";
import type { Destination, Ip, Metadata } from "#core/session.ts";
import type { SocketQuery } from "#platform/process-lookup.ts";

/** `always`: for every session, shown or not; `strict`: where a rule needs it; `off`: never. */
export type FindProcessMode = "always" | "strict" | "off";

/** Where a session really goes and what domain rules see of it: fake-IP, mapping, hosts and sniffing have their say. */
export interface Prepared {
  readonly destination: Destination;
  /** What the outbound is asked for; absent: `destination`. */
  readonly dial?: Destination;
  /** Absent: `normal`. */
  readonly dnsMode?: DnsMode;
  /** What domain rules see; absent: the destination's host. */
  readonly host?: string | null;
  /** The name that sniffing found; absent: none. */
  readonly sniffedHost?: string;
  /** The address for IP rules: null, it must not be looked up; absent: the destination's, or not looked up yet. */
  readonly ip?: Ip | null;
}

/** The facts that are known before any lookup. */
export function factsOf(
  { network, source, inbound, dscp }: Metadata,
  { destination, host = destination.host, ip }: Prepared,
  findProcessMode: FindProcessMode,
): Facts {
  const known = ip === undefined ? (destination.ip ?? (host === null ? null : undefined)) : ip;
  const facts: { -readonly [name in keyof Facts]: Facts[name] } = {
    network,
    host,
    port: destination.port,
    sourceIp: source.ip,
    sourcePort: source.port,
    inboundName: inbound.name,
    inboundType: inbound.type,
    inboundPort: inbound.local.port,
    inboundUser: inbound.user,
    dscp,
  };
  if (known !== undefined) facts.ip = known;
  if (findProcessMode === "off") facts.process = facts.uid = null;
  return facts;
}

/** The client's socket from its own side; what it thinks it is connected to depends on how it was captured. */
export function socketOf({
  network,
  source,
  inbound,
  destination: { ip, port },
}: Metadata): SocketQuery | null {
  if (network === "icmp") return null; // a ping has no port by which its process could be found
  return { network, source, peers: ip === null ? [inbound.local] : [inbound.local, { ip, port }] };
}
