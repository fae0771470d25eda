/** What the Controller answers: only the fields that the dashboard reads. All text in it is untrusted. */

export type Mode = "rule" | "global" | "direct";
export const MODES: readonly Mode[] = ["rule", "global", "direct"];

export const LOG_LEVELS = ["debug", "info", "warning", "error"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** When the process of a connection is looked up. */
export type ProcessMode = "off" | "strict" | "always";

export interface Configs {
  readonly mode: Mode;
  readonly "log-level": LogLevel | "silent";
  readonly "allow-lan": boolean;
  readonly "bind-address": string;
  readonly ipv6: boolean;
  readonly "tcp-concurrent": boolean;
  readonly "unified-delay": boolean;
  readonly sniffing: boolean;
  readonly "interface-name": string;
  readonly "find-process-mode": ProcessMode;
  readonly port: number;
  readonly "socks-port": number;
  readonly "redir-port": number;
  readonly "tproxy-port": number;
  readonly "mixed-port": number;
  readonly tun: { readonly enable: boolean; readonly stack: string };
}

export interface Traffic {
  readonly up: number;
  readonly down: number;
  readonly upTotal: number;
  readonly downTotal: number;
}

export interface Connection {
  readonly id: string;
  readonly metadata: {
    readonly network: "tcp" | "udp";
    readonly type: string;
    readonly sourceIP: string;
    readonly sourcePort: string;
    readonly destinationIP: string;
    readonly destinationPort: string;
    readonly host: string;
    readonly sniffHost: string;
    readonly remoteDestination: string;
    readonly inboundName: string;
    readonly inboundUser: string;
    readonly inboundPort: string;
    readonly dnsMode: string;
    readonly process: string;
    readonly processPath: string;
  };
  readonly upload: number;
  readonly download: number;
  readonly start: string;
  /** The leaf first. */
  readonly chains: readonly string[];
  readonly rule: string;
  readonly rulePayload: string;
}

export interface Snapshot {
  readonly downloadTotal: number;
  readonly uploadTotal: number;
  readonly memory: number;
  readonly connections: readonly Connection[] | null;
}

/** Of `/api/svc/connections/ended`. */
export interface EndedConnection extends Connection {
  readonly end: string;
  readonly reason: EndReason;
  /** The error's own words; "": there is none. */
  readonly detail: string;
}

export type EndReason =
  | "over"
  | "closed"
  | "silent"
  | "client-lost"
  | "remote-lost"
  | "not-dialled"
  | "rejected";

export interface History {
  readonly time: string;
  /** Milliseconds; 0: failed. */
  readonly delay: number;
}

export interface Proxy {
  readonly name: string;
  readonly type: string;
  readonly alive: boolean;
  readonly history: readonly History[];
  readonly extra: Readonly<Record<string, { readonly history: readonly History[] }>>;
  readonly udp: boolean;
  readonly now?: string;
  readonly all?: readonly string[];
  readonly fixed?: string;
  readonly testUrl?: string;
  readonly hidden?: boolean;
  /** Why it cannot be used: no test will ever find it alive. */
  readonly unavailable?: string;
}

export interface ProxyProvider {
  readonly name: string;
  readonly vehicleType: string;
  readonly proxies: readonly Proxy[];
  readonly updatedAt?: string;
  readonly subscriptionInfo?: {
    readonly Upload: number;
    readonly Download: number;
    readonly Total: number;
    readonly Expire: number;
  };
}

export interface Rule {
  readonly index: number;
  readonly type: string;
  readonly payload: string;
  readonly proxy: string;
  readonly size: number;
  /** Why it matches nothing; absent: it can match. */
  readonly unavailable?: string;
  readonly extra: { readonly disabled: boolean; readonly hitCount: number; readonly hitAt: string };
}

export interface RuleProvider {
  readonly name: string;
  readonly behavior: string;
  readonly vehicleType: string;
  readonly ruleCount: number;
  readonly updatedAt?: string;
}

export interface LogRecord {
  readonly time: string;
  /** Says `warn` where the rest of the API says `warning`. */
  readonly level: string;
  readonly message: string;
}

export interface DnsRecord {
  readonly name: string;
  readonly type: number;
  readonly TTL: number;
  readonly data: string;
}

export interface DnsAnswer {
  readonly Status: number;
  readonly Answer?: readonly DnsRecord[];
  readonly Authority?: readonly DnsRecord[];
  readonly Additional?: readonly DnsRecord[];
}

export interface Explanation {
  /** As it was understood. */
  readonly question: string;
  readonly steps: readonly {
    /** -1: a remark, not a rule. */
    readonly index: number;
    readonly type: string;
    readonly payload: string;
    readonly target: string;
    readonly verdict: "yes" | "no" | "unknown";
    readonly note: string;
  }[];
  /** From the rule's target down to the leaf. */
  readonly chain: readonly string[];
}

/** A store that came back older than what had been acknowledged, as the API says it. */
export interface Rollback {
  readonly seen_generation: number;
  readonly found_generation: number;
  readonly since: number;
}
