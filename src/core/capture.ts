/**
 * How the kernel brings traffic to a TUN: ip rules and routes (auto-route), the table of nftables (auto-redirect), and
 * what may be changed in it while it runs. `src/tun` makes the plan, `src/capture` puts it in force.
 */
import type { Range } from "./ranges.ts";
import type { Ip, IpPrefix } from "./session.ts";

/** A network: 4 or 16 bytes with the host bits cleared. The same shape as `Cidr` of #net/cidr.ts. */
export interface Prefix {
  readonly bytes: Uint8Array;
  readonly bits: number;
}

/** The TUN's address in one family. */
export interface TunAddress {
  /** The device's own address with its prefix, host bits kept. */
  readonly address: IpPrefix;
  /** The address after it: what NAT writes as the source, and where hijacked DNS is sent. */
  readonly next: Ip;
}

/** The keys of `tun` that routing reads, every list as it came from the file, ranges and single numbers in one list. */
export interface CaptureOptions {
  readonly autoRoute: boolean;
  /** Mark mode: always together with `autoRoute`. */
  readonly autoRedirect: boolean;
  readonly strictRoute: boolean;
  /** What becomes of traffic that is captured when the program ends: it takes its ordinary ways, or none. */
  readonly onExit: "open" | "closed";
  /** Is it kept in while no capture is in force? One of all captures is. */
  readonly guarded: boolean;
  /** With the older per-family spellings. Empty: everything. */
  readonly routeAddress: readonly Prefix[];
  readonly routeExcludeAddress: readonly Prefix[];
  readonly includeInterface: readonly string[];
  readonly excludeInterface: readonly string[];
  readonly includeUid: readonly Range[];
  readonly excludeUid: readonly Range[];
  readonly excludeSourcePort: readonly Range[];
  readonly excludeDestinationPort: readonly Range[];
  /** Text as written; what is no MAC address is a `ConfigError` that names the key. */
  readonly includeMac: readonly string[];
  readonly excludeMac: readonly string[];
  readonly tableIndex: number;
  readonly ruleIndex: number;
  readonly inputMark: number;
  readonly outputMark: number;
  readonly fallbackRuleIndex: number;
  /** nftables shall keep a set of learned DIRECT addresses (kernel-direct). */
  readonly kernelDirect: boolean;
}

export interface CapturePlan {
  readonly device: { readonly name: string; readonly index: number };
  /** Null: the family has no address on the device. */
  readonly inet4: TunAddress | null;
  readonly inet6: TunAddress | null;
  readonly options: CaptureOptions;
  /** Port of the listener (all addresses) that takes TCP of auto-redirect; null without auto-redirect. */
  readonly redirectPort: number | null;
  /** Null: no `route-address-set` is configured. An empty list is a set that matches nothing. */
  readonly routeSet: readonly Prefix[] | null;
  /** Null: no `route-exclude-address-set` is configured. */
  readonly routeExcludeSet: readonly Prefix[] | null;
  /** The general `ipv6`. With `strictRoute`, a family without an address is unreachable, not leaked. */
  readonly ipv6: boolean;
  /** Addresses that only this program knows the names of; empty: it gives none away. They never leave by another device. */
  readonly fakeRanges: readonly Prefix[];
  /** Questions on port 53 are sent to `next`. */
  readonly hijackDns: boolean;
}

/** Learned DIRECT addresses in the kernel; each call is one transaction, settled when the kernel has confirmed it. */
export interface DirectSet {
  /** Those that leave go first; what is there, or is not, already is no error. */
  change(remove: readonly Ip[], add: readonly Ip[]): Promise<void>;
  replace(addresses: readonly Ip[]): Promise<void>;
}

/**
 * Marks that a classifier sets on packets before nftables sees them: single bits; the other bits of a mark belong to
 * other programs.
 */
export interface SteeringMarks {
  /** Not captured. */
  readonly direct: number;
  /** Captured; null: such packets are not marked. */
  readonly proxy: number | null;
  /** PROXY packets enter the TUN past nftables: connection tracking has not seen what the TUN answers. */
  readonly untracked: boolean;
}

/** In force from the moment it exists; disposing gives traffic back to the ordinary routes, nftables first. */
export interface Capture extends AsyncDisposable {
  /** After an update of a rule provider: the whole new contents. A set that is not configured is ignored. */
  updateSets(sets: {
    readonly route: readonly Prefix[];
    readonly routeExclude: readonly Prefix[];
  }): Promise<void>;
  /** Null without auto-redirect, or where the plan has no set of learned addresses. */
  readonly directSet: DirectSet | null;
  /** Rules on the marks of a classifier, in place of those before; null: none. One transaction. */
  steer(marks: SteeringMarks | null): Promise<void>;
  /** What another process had is this one's from now on. Logs what fails. */
  confirm(): Promise<void>;
  /** Another process captures: what this one alone can take away goes, and the rest stays. */
  leave(): Promise<void>;
}

/** The interface of the first default route of the main table that is not the TUN. */
export interface DefaultInterface {
  readonly name: string;
  readonly index: number;
}

/** Made by `watchDefaultInterface(except, on, { log })` of `src/capture`: `except` is the TUN's name. */
export interface DefaultInterfaceWatch extends AsyncDisposable {
  /** Null: there is none now. */
  readonly current: DefaultInterface | null;
}
