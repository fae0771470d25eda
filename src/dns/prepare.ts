/** What a session's destination means before rules see it (dns.md §4.1). */
import type { DnsOptions } from "#core/dns-options.ts";
import type { DnsMode } from "#core/router.ts";
import type { Destination, Ip } from "#core/session.ts";
import type { FakeIp } from "./fake-ip.ts";
import type { Hosts } from "./hosts.ts";
import type { Mapping } from "./mapping.ts";

export interface Prepared {
  /** With the name that the client meant; a fake address is gone from it. */
  readonly destination: Destination;
  readonly dnsMode: DnsMode;
  /**
   * A fake address that nobody knows any more: `destination` still holds it. Refuse the dial with this text, unless
   * sniffing finds a name. Null: all is well.
   */
  readonly refusal: string | null;
}

export interface PrepareEnv {
  readonly mode: DnsOptions["enhancedMode"];
  readonly fakeIp: FakeIp | null;
  readonly mapping: Mapping | null;
  readonly hosts: Hosts | null;
}

/** Pure but for the order of use in the tables. */
export function prepareDestination(destination: Destination, env: PrepareEnv): Prepared {
  const { host, ip } = destination;
  if (host !== null) return pinned(destination, host, env.hosts);
  if (ip === null || env.mode === "normal") return { destination, dnsMode: "normal", refusal: null };
  const faked = env.fakeIp?.hostOf(ip) ?? null;
  if (faked !== null) {
    const restored = aliased({ ...destination, host: faked, ip: null }, faked, env.hosts);
    return { destination: restored, dnsMode: "fake-ip", refusal: null };
  }
  if (env.fakeIp?.isFake(ip) === true)
    return { destination, dnsMode: "fake-ip", refusal: `fake DNS record ${ip} missing` };
  const mapped = env.mapping?.hostOf(ip) ?? null;
  if (mapped === null) return { destination, dnsMode: "normal", refusal: null };
  const listed = env.hosts?.find(mapped) ?? null;
  const address = oneOf(listed?.addresses ?? []) ?? ip;
  const named = { ...destination, host: listed?.name ?? mapped, ip: address };
  return { destination: named, dnsMode: "redir-host", refusal: null };
}

/** A name that hosts knows gets its address there, or the name that it stands for. */
function pinned(destination: Destination, host: string, hosts: Hosts | null): Prepared {
  const hit = hosts?.find(host) ?? null;
  if (hit === null) return { destination, dnsMode: "normal", refusal: null };
  const ip = hit.addresses === null ? destination.ip : oneOf(hit.addresses);
  return { destination: { ...destination, host: hit.name, ip }, dnsMode: "hosts", refusal: null };
}

function aliased(destination: Destination, host: string, hosts: Hosts | null): Destination {
  const hit = hosts?.find(host) ?? null;
  return hit === null || hit.addresses !== null ? destination : { ...destination, host: hit.name };
}

function oneOf(addresses: readonly Ip[]): Ip | null {
  return addresses[Math.floor(Math.random() * addresses.length)] ?? null;
}
