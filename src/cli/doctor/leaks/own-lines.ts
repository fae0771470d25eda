/** The addresses that programs of this machine leave from when no TUN takes their packets. */
import { existsSync } from "node:fs";
import { networkInterfaces } from "node:os";
import type { Ip } from "#core/session.ts";
import { parseIp } from "#net/address/ip.ts";

export interface OwnAddress {
  readonly device: string;
  readonly family: 4 | 6;
  readonly ip: Ip;
}

/** Of every device but loopback and TUN; link-local ones are left out, for these reach no host further away. */
export function ownAddresses(): readonly OwnAddress[] {
  const found: OwnAddress[] = [];
  for (const [device, addresses = []] of Object.entries(networkInterfaces())) {
    if (existsSync(`/sys/class/net/${device}/tun_flags`)) continue;
    for (const { address, family, internal } of addresses) {
      const ip = parseIp(address);
      if (internal || ip === null || /^(fe[89ab]|169\.254\.)/.test(ip)) continue;
      found.push({ device, family: family === "IPv4" ? 4 : 6, ip });
    }
  }
  return found;
}
