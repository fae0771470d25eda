/** Keys of `dns` and `sniffer`. */
import type { Descriptions } from "#core/key-descriptions.ts";

export const dns: Descriptions = {
  dns: "How names are resolved, and the DNS server for clients.",
  "dns.enable": "Whether this section is in force; off, the system's resolver is asked.",
  "dns.listen": ["Address of the DNS server for clients, UDP and TCP. Empty: none.", "0.0.0.0:1053"],
  "listen-quic": [
    "Address of DNS over QUIC (RFC 9250) for clients, on UDP, with the certificate of `tls`. Empty: none.",
    "0.0.0.0:853",
  ],
  "listen-h3": [
    "Address of DNS over HTTP/3 for clients, at the path /dns-query, with the certificate of `tls`. It may be that of `listen-quic`. Empty: none.",
    "0.0.0.0:443",
  ],
  "listen-routing-mark": ["Firewall mark of the DNS server's sockets on Linux.", 6666],
  "dns.ipv6":
    "Whether clients get IPv6 addresses. Look-ups of the program itself follow `ipv6` at the top alone.",
  "ipv6-timeout": ["Milliseconds that a look-up of both families waits for the IPv6 answer.", 100],
  "use-hosts": "Whether `hosts` of this file answers.",
  "use-system-hosts": "Whether the system's hosts file answers.",
  "enhanced-mode": [
    "What clients are answered: `fake-ip` an address that stands for the name, `redir-host` and `normal` the real ones.",
    "fake-ip",
  ],
  "fake-ip-range": ["IPv4 network of fake addresses; also gives the TUN its address.", "198.18.0.1/16"],
  "fake-ip-range6": [
    "IPv6 network of fake addresses. Empty: IPv6 questions about such names get no address.",
    "fdfe:dcba:9877::1/64",
  ],
  "fake-ip-filter": [
    "Names that get real addresses (or, with `whitelist`, the only ones with fake addresses): patterns, `geosite:…`, `rule-set:…`.",
    ["*.lan", "+.stun.*.*", "geosite:private"],
  ],
  "fake-ip-filter-mode": [
    "How `fake-ip-filter` is read: `blacklist`, `whitelist`, or `rule` for lines `TYPE,payload,fake-ip` or `…,real-ip`.",
    "blacklist",
  ],
  "fake-ip-ttl": ["Seconds for which clients may keep a fake address. 0: 1.", 1],
  "dns.nameserver": [
    "Servers that are asked, all at once; the first answer counts.",
    ["https://1.1.1.1/dns-query", "tls://dns.example.org"],
  ],
  "default-nameserver": [
    "Servers that resolve the names of other servers; addresses only.",
    ["1.1.1.1", "system"],
  ],
  fallback: [
    "Servers whose answer counts where `fallback-filter` distrusts that of `nameserver`.",
    ["tls://8.8.8.8"],
  ],
  "fallback-filter": "When answers of `nameserver` are not believed.",
  "fallback-filter.geoip": "Whether addresses outside of the country `geoip-code` are not believed.",
  "geoip-code": ["Country whose addresses are believed.", "CN"],
  ipcidr: ["Networks whose addresses are never believed.", ["240.0.0.0/4"]],
  "fallback-filter.domain": ["Names that only `fallback` is asked for.", ["+.example.com"]],
  "fallback-filter.geosite": ["Domain lists whose names only `fallback` is asked for.", ["gfw"]],
  "fallback-lazy-query": "Whether `fallback` is asked only when its answer is needed, instead of at once.",
  "nameserver-policy": [
    "Servers for some names: pattern, `geosite:…` or `rule-set:…` to a server or a list. The first that matches is asked.",
    { "+.lan": "192.168.1.1", "geosite:cn": ["https://doh.pub/dns-query"] },
  ],
  "proxy-server-nameserver": ["Servers that resolve the names of nodes.", ["https://1.1.1.1/dns-query"]],
  "proxy-server-nameserver-policy": [
    "As `nameserver-policy`, for names of nodes.",
    { "+.example.net": "1.1.1.1" },
  ],
  "direct-nameserver": ["Servers that resolve names for DIRECT.", ["system"]],
  "direct-nameserver-follow-policy": "Whether `nameserver-policy` goes before `direct-nameserver`.",
  "respect-rules":
    "Whether the servers themselves are reached by the rules; needs `proxy-server-nameserver`.",
  "prefer-h3": "Whether DNS over HTTPS goes by HTTP/3 where that is the faster way.",
  "cache-algorithm": ["How the cache chooses what to drop: `lru` or `arc`.", "lru"],
  "cache-max-size": ["Answers that are kept at most. 0: 4096.", 4096],
  sniffer: "Reading the name that a client asks for out of its first bytes.",
  "sniffer.enable": "Whether first bytes are read.",
  sniff: [
    "What is looked for, and at which ports: `HTTP`, `TLS`, `QUIC`.",
    { TLS: { ports: [443, 8443] }, HTTP: { ports: [80, "8080-8880"] } },
  ],
  "*.ports": ["Destination ports at which it is looked for, single ones and ranges.", [443, "8000-8999"]],
  "*.override-destination":
    "Whether the name replaces the destination for this protocol; without it the section's own key counts.",
  "sniffer.override-destination":
    "Whether the name that was read replaces the destination, instead of serving rules alone.",
  "force-dns-mapping": "Whether it is done for addresses whose names are known from DNS, too.",
  "parse-pure-ip": "Whether it is done for addresses whose names are not known.",
  "force-domain": [
    "Names for which it is done in any case: patterns, `geosite:…`, `rule-set:…`.",
    ["+.netflix.com"],
  ],
  "skip-domain": ["Names that are not believed when they are read.", ["Mijia Cloud"]],
  "skip-src-address": [
    "Clients for which it is not done: networks, `geoip:…`, `rule-set:…`.",
    ["192.168.0.3/32"],
  ],
  "skip-dst-address": ["Destinations for which it is not done.", ["rule-set:telegram"]],
  sniffing: ["Older form of `sniff`: what is looked for, each at its usual port.", ["tls", "http"]],
  "port-whitelist": ["Older form: the ports of `sniffing`.", ["443", "80"]],
};
