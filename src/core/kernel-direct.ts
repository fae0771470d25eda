/** What the API reads of kernel-direct: destinations that the kernel forwards past this program. */

import type { Prefix } from "./capture.ts";

export interface BypassSettings {
  /** Learnt addresses. */
  readonly maxEntries: number;
  /** Networks of made-up addresses. */
  readonly fakeRanges: readonly Prefix[];
  /** Null: nftables alone. */
  readonly classifier: ClassifierSettings | null;
}

/** The keys `kernel-direct-ebpf-*` of a TUN. */
export interface ClassifierSettings {
  readonly interfaces: readonly string[];
  readonly maxEntries: number;
  readonly flowEntries: number;
  /** Single bits. */
  readonly directMark: number;
  readonly proxyMark: number;
  readonly inputMark: number;
  /** What no prefix names is PROXY. */
  readonly proxyMode: boolean;
  /** PROXY packets go straight into the TUN. */
  readonly redirects: boolean;
  readonly directPrefixes: readonly Prefix[];
  readonly proxyPrefixes: readonly Prefix[];
  /** Without it the TUN is refused. */
  readonly required: boolean;
}

export interface KernelDirectControl {
  status(): KernelDirectView;
  /** A name or an address literal: what is known of it, one row an address and a TUN. Throws `DialError` for a name that cannot be resolved. */
  explain(destination: string): Promise<readonly LearntExplanation[]>;
  readonly capabilities: KernelDirectAbilities;
}

/** What this build can do on this system. */
export interface KernelDirectAbilities {
  readonly backends: readonly string[];
  readonly features: readonly string[];
}

export type KernelDirectBackend = "nftables" | ClassifierBackend;
export type ClassifierBackend = "ebpf-tc-lpm-lru" | "ebpf-tc-lpm-lru-redirect";

export interface KernelDirectView {
  /** Of the first classifier, else of the sets. */
  readonly backend: KernelDirectBackend;
  /** By the name of the first port. */
  readonly fastPaths: readonly FastPathView[];
  /** One for each TUN that learns. */
  readonly learnedSets: readonly LearnedSetView[];
  readonly process: { readonly pid: number; readonly startedAtUnixSeconds: number };
  readonly traffic: TrafficEstimate;
  /** Why the last classifier ended or could not be made; null since one was made. */
  readonly lastError: string | null;
}

export interface FastPathView {
  readonly backend: ClassifierBackend;
  readonly requestedInterfaces: readonly string[];
  /** Ports that have the program. */
  readonly interfaces: readonly string[];
  /** Null: PROXY packets are marked. */
  readonly proxyRedirectInterface: string | null;
  readonly mark: number;
  /** 0: no PROXY steering. */
  readonly proxyMark: number;
  readonly inputMark: number;
  /** LPM prefixes by family and by decision. */
  readonly prefixes: Readonly<Record<"ipv4" | "ipv6" | "direct" | "proxy" | "bypass", number>>;
  readonly flowMaxEntries: number;
  readonly direct: { readonly packets: number; readonly bytes: number };
  readonly proxy: { readonly packets: number; readonly bytes: number };
  readonly flowHits: number;
  readonly updatedAtMs: number;
}

export interface LearnedSetView {
  readonly maxEntries: number;
  readonly maxRecords: number;
  readonly directAddresses: number;
  readonly proxyAddresses: number;
  /** (address, name) pairs. */
  readonly records: number;
  /** Since the process started. */
  readonly evictions: number;
}

/** Is everything to an address DIRECT, and by which rule or setting? */
export interface KernelDirectExplanation {
  readonly ip: string;
  readonly direct: boolean;
  readonly reason: string;
}

export interface LearntExplanation extends KernelDirectExplanation {
  /** What the kernel has of it now; null: nothing. */
  readonly learnt: "direct" | "proxy" | null;
}

/** What goes through this program, without what the kernel forwards. */
export interface TrafficEstimate {
  readonly uploadBytes: number;
  readonly downloadBytes: number;
  /** Bytes of the last whole second. */
  readonly uploadRate: number;
  readonly downloadRate: number;
  readonly activeConnections: number;
}

/** Lets the kernel forward by itself what is certainly DIRECT. */
export interface KernelBypass extends AsyncDisposable {
  /** Descriptor of what it remembers of open connections, for another process; null: nothing. */
  readonly ways: number | null;
  /** Nothing that was learnt is in force when it settles, and nothing is learnt until `resume`. */
  pause(): Promise<void>;
  resume(): void;
}
