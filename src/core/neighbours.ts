import type { Ip } from "./session.ts";

/** Which hardware address a host of the networks around has, by what the kernel knows of it now. */
export interface Neighbours {
  /** `02:00:5e:00:53:01`; null: not a neighbour, not known, or not the same on two links. */
  macOf(ip: Ip): string | null;
  /** All addresses of a hardware address. */
  addressesOf(mac: string): readonly Ip[];
  /** Called soon after addresses have got another hardware address, with these; at most ten times a second. */
  watch(on: (changed: ReadonlySet<Ip>) => void): Disposable;
}

/** How devices call themselves, by the files of DHCP servers. */
export interface LeaseNames {
  /** `files` as the configuration has them; null: none of them names it. */
  nameOf(files: readonly string[], mac: string): string | null;
}
