/** `dns`: the keys as they are written. What they mean together is read in dns-build.ts. */
import { block, choice, flag, int, leftOut, list, mapOf, text } from "#core/fields.ts";
import { cidr } from "#net/address/address-fields.ts";
import { mark } from "./general.ts";

const servers = () => list(text());

const policy = () => mapOf(servers());

/** Answers; 0 means it, too. */
export const DEFAULT_CACHE_SIZE = 4096;

export const dns = block({
  enable: flag().default(false),
  listen: text().default(""),
  "listen-quic": text().default(""),
  "listen-h3": text().default(""),
  "listen-routing-mark": leftOut(mark()).default(0),
  ipv6: flag().default(false),
  "ipv6-timeout": int(0, 5000).default(100),
  "use-hosts": flag().default(true),
  "use-system-hosts": flag().default(true),
  "enhanced-mode": choice(["fake-ip", "redir-host", "normal"], { fold: true }).default("redir-host"),
  "fake-ip-range": text().default("198.18.0.1/16"),
  "fake-ip-range6": text().default(""),
  "fake-ip-filter": list(text()).default(["dns.msftnsci.com", "www.msftnsci.com", "www.msftconnecttest.com"]),
  "fake-ip-filter-mode": choice(["blacklist", "whitelist", "rule"], { fold: true }).default("blacklist"),
  "fake-ip-ttl": int(0, 86_400).default(1),
  nameserver: servers().default(["https://doh.pub/dns-query", "tls://223.5.5.5:853"]),
  "default-nameserver": servers().default(["114.114.114.114", "223.5.5.5", "8.8.8.8", "1.0.0.1"]),
  fallback: servers().default([]),
  "fallback-filter": block({
    geoip: flag().default(true),
    "geoip-code": text().default("CN"),
    ipcidr: list(leftOut(cidr())).default([]),
    domain: list(text()).default([]),
    geosite: list(text()).default([]),
  }).prefault({}),
  "fallback-lazy-query": flag().default(false),
  "nameserver-policy": policy().default({}),
  "proxy-server-nameserver": servers().default([]),
  "proxy-server-nameserver-policy": policy().default({}),
  "direct-nameserver": servers().default([]),
  "direct-nameserver-follow-policy": flag().default(false),
  "respect-rules": flag().default(false),
  "prefer-h3": flag().default(false),
  "cache-algorithm": text().default("lru"),
  "cache-max-size": int(0, 1_000_000).default(DEFAULT_CACHE_SIZE),
});

export type DnsKeys = ReturnType<typeof dns.parse>;
