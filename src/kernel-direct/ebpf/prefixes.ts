/** What the maps hold beside learnt addresses, and which wins where both name the same prefix (kernel-direct.md §4.2). */
import type { Prefix } from "#core/capture.ts";
import type { Ip } from "#core/session.ts";
import { cidrText, type Cidr, cidrOf } from "#net/address/cidr.ts";
import { bytesOfIp } from "#net/address/ip.ts";
import { DECISION } from "./program.ts";

export type Decision = (typeof DECISION)[keyof typeof DECISION];

export interface FixedPrefixes {
  readonly direct: readonly Cidr[];
  readonly proxy: readonly Cidr[];
  /** The networks around the machine, its own addresses and the ranges of made-up ones. */
  readonly bypass: readonly Cidr[];
  /** What no prefix names is PROXY. */
  readonly proxyMode: boolean;
}

/** By prefix as text, both families; later rows overwrite equal ones. */
export function fixedContent({
  direct,
  proxy,
  bypass,
  proxyMode,
}: FixedPrefixes): ReadonlyMap<string, Decision> {
  const content = new Map<string, Decision>();
  const put = (cidrs: readonly Cidr[], decision: Decision): void => {
    for (const cidr of cidrs) content.set(cidrText(cidr), decision);
  };
  put(direct, DECISION.direct);
  if (proxyMode) {
    content.set("0.0.0.0/0", DECISION.proxy).set("::/0", DECISION.proxy);
    put(proxy, DECISION.proxy);
  }
  put(bypass, DECISION.bypass);
  return content;
}

export function addressPrefix(ip: Ip): string {
  return `${ip}/${ip.includes(":") ? 128 : 32}`;
}

export function isIpv6(prefix: string): boolean {
  return prefix.includes(":");
}

/** The decision for a learnt address, given the configured prefixes. Null: no entry is needed. */
export function learntDecision(
  verdict: "direct" | "proxy" | null,
  fixed: Decision | undefined,
  proxyMode: boolean,
): Decision | null {
  if (fixed === DECISION.bypass) return fixed;
  if (verdict === "proxy" && proxyMode) return DECISION.proxy;
  if (verdict === "direct" && fixed !== DECISION.proxy) return DECISION.direct;
  return fixed ?? null;
}

// Key of an LPM trie: PREFIX_LENGTH(4, the machine's order) ADDRESS(4 or 16)
export function lpmKey(prefix: string): Uint8Array {
  const { bytes, bits } = cidrOf(prefix);
  const key = new Uint8Array(4 + bytes.length);
  new Uint32Array(key.buffer, 0, 1)[0] = bits;
  key.set(bytes, 4);
  return key;
}

/** As the kernel tells it, with an address in it. */
export function networkOf(prefix: Prefix): Cidr {
  return cidrOf(cidrText(prefix));
}

export function ownPrefix(ip: Ip): Cidr {
  const bytes = bytesOfIp(ip);
  return { bytes, bits: bytes.length * 8 };
}
