/** What a TUN is to be: plain data, so that two of them can be compared. */
import type { CaptureOptions, Prefix, TunAddress } from "#core/capture.ts";
import { ConfigError } from "#core/errors.ts";
import type { BypassSettings } from "#core/kernel-direct.ts";
import type { Ip, IpPrefix } from "#core/session.ts";
import { bytesOfIp, familyOf, ipFromBytes } from "#net/address/ip.ts";
import { byteAt } from "#lib/at.ts";

export interface TunSettings {
  /** The inbound's name. */
  readonly name: string;
  readonly ruleList: string | null;
  readonly target: string | null;
  /** As configured; all three are the system stack. */
  readonly stack: "gvisor" | "system" | "mixed";
  /** Empty: the first free name. */
  readonly device: string;
  readonly mtu: number;
  /** TCP segments and checksums are left to the kernel. */
  readonly gso: boolean;
  /** 0: a device of our own. Otherwise one that another program has set up, and for which weir makes no routes. */
  readonly fileDescriptor: number;
  /** All addresses of the device; the first of each family is the stack's. */
  readonly addresses: readonly IpPrefix[];
  /** `host` 0.0.0.0 or ::, any destination. */
  readonly dnsHijack: readonly { readonly host: string; readonly port: number }[];
  readonly udpTimeoutMs: number;
  readonly icmpTimeoutMs: number;
  /** False: every ping is answered here. */
  readonly forwardsIcmp: boolean;
  readonly loopbackAddresses: readonly Ip[];
  readonly capture: CaptureOptions;
  /** See `CapturePlan.fakeRanges`. */
  readonly fakeRanges: readonly Prefix[];
  /** What the kernel forwards by itself; null: nothing. */
  readonly bypass: BypassSettings | null;
  /** Sockets that leave are bound to the device of the default route. */
  readonly detectsInterface: boolean;
  /** Names of rule providers; null: the key is not used. */
  readonly routeSets: readonly string[] | null;
  readonly routeExcludeSets: readonly string[] | null;
  /** The general `ipv6`. */
  readonly ipv6: boolean;
}

/** The stack's address in one family and the one after it; null: none of that family. Throws `ConfigError`. */
export function tunAddress(addresses: readonly IpPrefix[], family: 4 | 6): TunAddress | null {
  const address = addresses.find(({ ip }) => familyOf(ip) === family);
  if (address === undefined) return null;
  const bytes = bytesOfIp(address.ip);
  const next = Uint8Array.from(bytes);
  for (let at = next.length - 1; at >= 0; at--) {
    next[at] = (byteAt(next, at) + 1) & 0xff;
    if (next[at] !== 0) break;
  }
  if (!samePrefix(bytes, next, address.bits) || isLast(next, address.bits))
    throw new ConfigError(
      `inet${family}-address ${address.ip}/${address.bits}: needs one more usable address after the first, such as /${family === 4 ? 30 : 126}`,
    );
  return { address, next: ipFromBytes(next) };
}

function samePrefix(left: Uint8Array, right: Uint8Array, bits: number): boolean {
  for (let at = 0; at < bits; at++) if (bitOf(left, at) !== bitOf(right, at)) return false;
  return true;
}

/** The last IPv4 address of a network is its broadcast address. */
function isLast(address: Uint8Array, bits: number): boolean {
  if (address.length !== 4 || bits >= 31) return false;
  for (let at = bits; at < 32; at++) if (bitOf(address, at) === 0) return false;
  return true;
}

function bitOf(bytes: Uint8Array, at: number): number {
  return (byteAt(bytes, at >> 3) >> (7 - (at & 7))) & 1;
}
