/** Which device a policy is about, and what is known of it on the network. */
import type { DeviceView } from "#core/governance.ts";
import type { LeaseNames, Neighbours } from "#core/neighbours.ts";
import type { Ip } from "#core/session.ts";
import { cidrHolds } from "#net/address/cidr.ts";
import { bytesOfIp } from "#net/address/ip.ts";
import type { BookEntry } from "./policy-book.ts";
import type { DeviceSettings, GovernanceSettings } from "./settings.ts";

export interface DevicesEnv {
  readonly neighbours: Neighbours;
  readonly leases: LeaseNames;
  /** Those in force; null: there are none. */
  readonly settings: GovernanceSettings | null;
}

type DeviceNames = Pick<DeviceView, "hostName" | "addresses">;

/** Its name in the files of leases, and its addresses where devices are found among the neighbours. */
export function namesOf({ mac }: DeviceSettings, { neighbours, leases, settings }: DevicesEnv): DeviceNames {
  const { deviceIdentity = "address", leases: files = [] } = settings ?? {};
  if (mac === null) return { hostName: null, addresses: [] };
  return {
    hostName: leases.nameOf(files, mac),
    addresses: deviceIdentity === "neighbour" ? neighbours.addressesOf(mac) : [],
  };
}

/** Is it enabled, and about the device with this address or about all? */
export function isAbout(entry: BookEntry, ip: Ip, { neighbours, settings }: DevicesEnv): boolean {
  if (!entry.enabled) return false;
  if (entry.dimension !== "device") return entry.dimension === "global";
  const { mac, sourceCidrs } = entry.settings;
  const found = settings?.deviceIdentity === "neighbour" ? neighbours.macOf(ip) : null;
  if (mac !== null && found !== null) return mac === found;
  return sourceCidrs.some((cidr) => cidrHolds(cidr, bytesOfIp(ip)));
}
