/** Keys at the top level of the file, but for the large sections, which have files of their own. */
import type { Descriptions } from "#core/key-descriptions.ts";

export const general: Descriptions = {
  port: ["TCP port of an HTTP proxy; 0 switches it off.", 7891],
  "socks-port": ["TCP and UDP port of a SOCKS4, SOCKS4a and SOCKS5 proxy; 0 switches it off.", 7892],
  "mixed-port": ["Port that takes HTTP and SOCKS clients alike; 0 switches it off.", 7890],
  "redir-port": [
    "Port for TCP that nftables or iptables REDIRECT sends here (Linux); 0 switches it off.",
    7893,
  ],
  "tproxy-port": ["Port for TCP and UDP that TPROXY sends here (Linux); 0 switches it off.", 7894],
  "allow-lan":
    "Whether other machines may use the ports at the top level of the file. Without it they listen on 127.0.0.1 only.",
  "bind-address": [
    "Where the ports listen while `allow-lan` is on: `*` is every address of both families, else one address.",
    "192.168.1.1",
  ],
  authentication: [
    "Accounts of HTTP, SOCKS and mixed clients, each `user:password`. Without any, no password is asked for.",
    ["alice:correct horse"],
  ],
  "skip-auth-prefixes": ["Networks whose clients need no password.", ["127.0.0.1/8", "::1/128"]],
  "lan-allowed-ips": ["Networks whose clients may connect; empty is everybody.", ["192.168.0.0/16"]],
  "lan-disallowed-ips": [
    "Networks whose clients may not connect; wins over `lan-allowed-ips`.",
    ["192.168.7.0/24"],
  ],
  "allow-loopback-from-lan":
    "Whether clients of other machines may reach loopback addresses and the program's own listeners through the proxy. Off is the safe choice.",
  mode: [
    "`rule` decides by the rules, `global` sends everything through the group GLOBAL, `direct` sends everything out directly.",
    "rule",
  ],
  "log-level": ["What is logged: this level and the more serious ones.", "warning"],
  ipv6: "Whether IPv6 is used at all: off, no listener, look-up or dial uses it, whatever other sections say.",
  "interface-name": [
    "Network interface that outgoing connections use, where a node does not name its own.",
    "eth0",
  ],
  "routing-mark": ["Firewall mark (SO_MARK) of outgoing sockets on Linux; 0 sets none.", 6666],
  "unified-delay":
    "Whether delay tests measure a second request on the open connection, so that handshakes do not count.",
  "tcp-concurrent":
    "Whether all addresses of a name are dialled at once and the first connection wins, instead of one after the other.",
  "find-process-mode": [
    "When the program behind a connection is looked up: `always`, `strict` where a rule asks for it, `off` never.",
    "strict",
  ],
  "keep-alive-idle": [
    "Seconds without traffic before TCP asks whether the peer is still there; 0 is 15.",
    600,
  ],
  "keep-alive-interval": ["Seconds between two such questions; 0 is 15.", 15],
  "disable-keep-alive": "Whether TCP never asks whether a silent peer is still there.",
  "inbound-tfo": "TCP Fast Open of listeners. Read for compatibility, without effect.",
  "inbound-mptcp": "Multipath TCP of listeners. Read for compatibility, without effect.",
  "global-ua": ["User-Agent of downloads: providers, rule lists, databases.", "clash.meta/v1.19.0"],
  relay: [
    "Who moves bytes: `auto` lets worker threads do it where the system allows it, `portable` keeps everything in one thread.",
    "auto",
  ],
  workers: [
    "Threads that accept, dial and relay, for the life of the program. Without it one for each core.",
    2,
  ],
  "etag-support": "Whether downloads ask only for what has changed since the last time.",
  secret: [
    "What clients of the Controller must show as a Bearer token. Empty: open to this machine only.",
    "long and random",
  ],
  "geodata-mode":
    "Whether GEOIP rules read `geoip.dat` instead of the country database (`.metadb` or `.mmdb`).",
  "geodata-loader": "How other programs load databases. Read for compatibility, without effect.",
  "geosite-matcher": "How other programs keep domain lists. Read for compatibility, without effect.",
  "geo-auto-update": "Whether the databases are downloaded again at an interval.",
  "geo-update-interval": ["Hours between two downloads of the databases.", 24],
  "geox-url": ["Where the databases are downloaded from.", { mmdb: "https://example.org/country.mmdb" }],
  "geox-url.geoip": ["Address of `geoip.dat`.", "https://example.org/geoip.dat"],
  "geox-url.mmdb": ["Address of the country database.", "https://example.org/country.mmdb"],
  "geox-url.asn": ["Address of the database of autonomous systems.", "https://example.org/asn.mmdb"],
  "geox-url.geosite": ["Address of `geosite.dat`.", "https://example.org/geosite.dat"],
  "ss-config": "Older form of a Shadowsocks listener. Named by a warning, without effect: use `listeners`.",
  "vmess-config": "Older form of a VMess listener. Named by a warning, without effect: use `listeners`.",
  "global-client-fingerprint": [
    "Older form of `client-fingerprint`: the browser whose ClientHello is shown by nodes that name none.",
    "chrome",
  ],
  "clash-for-android": "Settings of one app. Read for compatibility, without effect.",
  "append-system-dns": "Read for compatibility, without effect.",
  "ui-subtitle-pattern": "Read for compatibility, without effect.",
  "tuic-server": "Older form of a TUIC listener. Named by a warning, without effect: use `listeners`.",
  "tuic-server.enable": "Without effect, as the whole section.",
  "tuic-server.listen": "Without effect, as the whole section.",
  "tuic-server.users": "Without effect, as the whole section.",
  iptables: "Older way to redirect traffic. Named by a warning, without effect: use `tun.auto-redirect`.",
  "iptables.enable": "Without effect, as the whole section.",
  "inbound-interface": "Without effect, as the whole section.",
  bypass: "Without effect, as the whole section.",
  "dns-redirect": "Without effect, as the whole section.",
  tls: "Certificate of the Controller's TLS port, and further authorities that clients believe.",
  "tls.acme": [
    "Names for which the Controller's certificate is fetched, in place of `certificate` and `private-key`; needs the block `acme`.",
    ["panel.example.com"],
  ],
  "tls.certificate": ["PEM text or path of the Controller's certificate chain.", "controller.crt"],
  "tls.private-key": ["PEM text or path of its private key.", "controller.key"],
  "tls.ech-key": "Encrypted ClientHello of the Controller. Named by a warning, without effect.",
  "custom-certifactes": [
    "Certificates of further authorities (PEM text or paths) that every TLS client of the file believes. The spelling is the ecosystem's.",
    ["company-ca.pem"],
  ],
  profile: "What is kept over restarts.",
  "store-selected": "Whether members that were selected in groups are kept over restarts.",
  "store-fake-ip": "Whether fake addresses keep their names over restarts.",
  ntp: "A clock of our own beside the system's, for protocols whose peers must agree on the time.",
  "ntp.enable": "Whether a time server is asked.",
  "ntp.server": ["Name or address of the time server.", "time.apple.com"],
  "ntp.port": ["UDP port of the time server.", 123],
  "ntp.interval": ["Minutes between two questions.", 30],
  "ntp.dialer-proxy": ["Proxy or group through which the time server is asked.", "DIRECT"],
  "write-to-system": "Setting the system's clock. Named by a warning, without effect.",
  experimental: "Settings that other programs try out.",
  "quic-go-disable-gso": "A setting of another QUIC library. Read for compatibility, without effect.",
  "quic-go-disable-ecn": "A setting of another QUIC library. Read for compatibility, without effect.",
  "dialer-ip4p-convert": "Addresses that carry a port. Named by a warning, without effect.",
  hosts: [
    "Names that are answered from here: pattern to address, list of addresses, another name, or `lan`.",
    { "router.lan": "192.168.1.1", "+.ads.example": "0.0.0.0" },
  ],
  rules: [
    "The rules, read from the top: `TYPE,payload,target`. The first that matches decides.",
    ["DOMAIN-SUFFIX,example.org,DIRECT", "MATCH,DIRECT"],
  ],
  "sub-rules": [
    "Lists of rules with names, for SUB-RULE rules and for listeners' `rule`.",
    { office: ["MATCH,DIRECT"] },
  ],
};
