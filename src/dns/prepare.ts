/** What a session's destination means before rules see it (dns.md §4.1). */
import type { DnsOptions } from "#core/dns-options.ts";
import type { DnsMode } from "#core/router.ts";
import type { Destination, Ip } from "#core/session.ts";
import { familyOf } from "#net/address/ip.ts";
import type { FakeIp } from "./fake-ip.ts";
import type { Hosts } from "./hosts.ts";
import type { Mapping } from "./mapping.ts";
import type { SharedAnswers } from "./shared-answers.ts";

export interface Prepared {
  /** With the name that the client meant; a fake address is gone from it. */
  readonly destination: Destination;
  /** What an outbound is asked for: the address alone where `hosts` has one, for a node would resolve the name. */
  readonly dial: Destination;
  readonly dnsMode: DnsMode;
  /**
   * The destination is a fake address that is no longer in the pool, and `destination` still holds it. Refuse the dial
   * with this text, unless sniffing finds a name. Null: the destination is valid.
   */
  readonly refusal: string | null;
}

export interface PrepareEnv {
  readonly mode: DnsOptions["enhancedMode"];
  readonly fakeIp: FakeIp | null;
  readonly mapping: Mapping | null;
  readonly hosts: Hosts | null;
  /** Other threads learn there what `hosts` has. */
  readonly answers: SharedAnswers;
  /** The global `ipv6`: without it an address of that family is taken only where there is no other. */
  readonly ipv6: boolean;
}

/** Pure but for the order of use in the tables. */
export function prepareDestination(destination: Destination, env: PrepareEnv): Prepared {
  const { host, ip } = destination;
  const { fakeIp, mapping } = env;
  if (host !== null) {
    const pinned = pin(destination, host, env);
    return { ...pinned, dnsMode: pinned.destination === destination ? "normal" : "hosts", refusal: null };
  }
  const asked = { destination, dial: destination };
  if (ip === null || env.mode === "normal") return { ...asked, dnsMode: "normal", refusal: null };
  const faked = fakeIp?.hostOf(ip) ?? null;
  if (faked !== null)
    return {
      ...pin({ ...destination, host: faked, ip: null }, faked, env),
      dnsMode: "fake-ip",
      refusal: null,
    };
  if (fakeIp?.isFake(ip) === true)
    return { ...asked, dnsMode: "fake-ip", refusal: `fake DNS record ${ip} missing` };
  const mapped = mapping?.hostOf(ip) ?? null;
  if (mapped === null) return { ...asked, dnsMode: "normal", refusal: null };
  return { ...pin({ ...destination, host: mapped }, mapped, env), dnsMode: "redir-host", refusal: null };
}

/** A name in `hosts` gets its address, or the name that it is an alias of; any other name stays. */
function pin(
  destination: Destination,
  host: string,
  { hosts, answers, ipv6 }: PrepareEnv,
): Pick<Prepared, "destination" | "dial"> {
  const hit = hosts?.find(host) ?? null;
  if (hit === null) {
    answers.pinNone(host);
    return { destination, dial: destination };
  }
  const usable = usableOf(hit.addresses ?? [], ipv6);
  const ip = usable[Math.floor(Math.random() * usable.length)] ?? null;
  if (hit.name === host) answers.pin(host, usable);
  const named = { ...destination, host: hit.name, ip: ip ?? destination.ip };
  return { destination: named, dial: ip === null ? named : { ...named, host: null } };
}

function usableOf(addresses: readonly Ip[], ipv6: boolean): readonly Ip[] {
  const v4 = ipv6 ? [] : addresses.filter((ip) => familyOf(ip) === 4);
  return v4.length > 0 ? v4 : addresses;
}
