/** The `dns` section as data: what the configuration makes and the DNS service is built from. */
import type { Ip, IpPrefix } from "./session.ts";

/** One server of a list. Two with the same members may share connections. */
export interface NameserverOptions {
  /** As written, for messages; never holds user information. */
  readonly text: string;
  readonly scheme:
    | "udp"
    | "tcp"
    | "tls"
    | "https"
    | "http"
    | "quic"
    | "system"
    | "dhcp"
    | "rcode"
    | "tailscale";
  /**
   * A name (lower case) or the canonical text of an address; for `dhcp` the interface, for `rcode` the word
   * (success, format_error, server_failure, name_error, not_implemented, refused), for `system` empty.
   */
  readonly host: string;
  /** Non-null where `host` is an address literal. */
  readonly ip: Ip | null;
  /** 0 for system, dhcp and rcode. */
  readonly port: number;
  /** DoH only: path without query, `/dns-query`; empty elsewhere. */
  readonly path: string;
  /** DoH only: `user:password`, percent-decoded; a secret. */
  readonly userInfo: string | null;
  /** Proxy, group or, where there is neither of that name, interface. */
  readonly exit: string | null;
  /** Dial as the routing rules say (`#RULES`, or `respect-rules` where there is no exit). */
  readonly followRules: boolean;
  /** `h3=true`: nothing but HTTP/3. */
  readonly http3: boolean;
  readonly skipCertVerify: boolean;
  readonly nameCertVerify: string | null;
  readonly ecs: IpPrefix | null;
  readonly ecsOverride: boolean;
  /** Question types that are answered empty, ascending: 1 for `disable-ipv4`, 28 for `disable-ipv6`, any other by number. */
  readonly disabledTypes: readonly number[];
  readonly disableReuse: boolean;
}

/** A condition on names. `pattern` is one of `a.com`, `*.a.com`, `.a.com`, `+.a.com`, lower case. */
export type DomainCondition =
  | { readonly kind: "domain"; readonly pattern: string }
  | { readonly kind: "geosite"; readonly category: string }
  | { readonly kind: "rule-set"; readonly name: string };

/** The first policy in file order of which a condition holds decides. */
export interface PolicyOptions {
  readonly conditions: readonly DomainCondition[];
  readonly servers: readonly NameserverOptions[];
}

/** A line of `fake-ip-filter` in mode `rule`. */
export interface FakeIpRule {
  /** DOMAIN, DOMAIN-SUFFIX, DOMAIN-KEYWORD, DOMAIN-REGEX, DOMAIN-WILDCARD, GEOSITE, RULE-SET or MATCH. */
  readonly type: string;
  readonly payload: string;
  readonly fake: boolean;
}

export interface ListenHost {
  /** A literal address; empty: all of them. */
  readonly host: string;
  readonly port: number;
}

export interface DnsOptions {
  readonly enable: boolean;
  /** Null: no server. */
  readonly listen: ListenHost | null;
  /** The same of DNS over QUIC, and over HTTP/3. */
  readonly listenQuic: ListenHost | null;
  readonly listenH3: ListenHost | null;
  readonly listenRoutingMark: number;
  /** Already masked by the general `ipv6`. */
  readonly ipv6: boolean;
  readonly ipv6TimeoutMs: number;
  readonly useHosts: boolean;
  readonly useSystemHosts: boolean;
  readonly enhancedMode: "fake-ip" | "redir-host" | "normal";
  readonly fakeIpRange: IpPrefix | null;
  readonly fakeIpRange6: IpPrefix | null;
  readonly fakeIpFilterMode: "blacklist" | "whitelist" | "rule";
  /** Empty in mode `rule`. */
  readonly fakeIpFilter: readonly DomainCondition[];
  /** Empty in the other modes. */
  readonly fakeIpRules: readonly FakeIpRule[];
  readonly fakeIpTtlSeconds: number;
  readonly nameserver: readonly NameserverOptions[];
  readonly defaultNameserver: readonly NameserverOptions[];
  readonly fallback: readonly NameserverOptions[];
  readonly fallbackFilter: {
    readonly geoip: boolean;
    readonly geoipCode: string;
    readonly ipcidr: readonly IpPrefix[];
    readonly domain: readonly string[];
    readonly geosite: readonly string[];
  };
  readonly fallbackLazyQuery: boolean;
  readonly nameserverPolicy: readonly PolicyOptions[];
  /** Empty: the main resolver is used. */
  readonly proxyServerNameserver: readonly NameserverOptions[];
  readonly proxyServerNameserverPolicy: readonly PolicyOptions[];
  readonly directNameserver: readonly NameserverOptions[];
  readonly directNameserverFollowPolicy: boolean;
  readonly respectRules: boolean;
  readonly preferH3: boolean;
  readonly cacheAlgorithm: "lru" | "arc";
  readonly cacheMaxSize: number;
}

/**
 * A value of `hosts`: literal addresses, or one other name. `lan` is resolved by the DNS engine, which knows the
 * interfaces.
 */
export type HostValue =
  | { readonly kind: "addresses"; readonly addresses: readonly Ip[] }
  | { readonly kind: "alias"; readonly name: string }
  | { readonly kind: "lan" };

/** In file order; `localhost` is in it. */
export interface HostEntry {
  readonly pattern: string;
  readonly value: HostValue;
}
