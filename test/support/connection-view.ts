import { randomUUID } from "node:crypto";
import type { ConnectionView } from "#core/control.ts";
import type { Ip } from "#core/session.ts";

/** A live session as the API sees it: curl through a SOCKS port, matched by a rule, sent through two groups. */
export function connection(host: string, id: string = randomUUID()): ConnectionView {
  const local = { ip: "127.0.0.1" as Ip, port: 7890 };
  const inbound = { name: "DEFAULT-MIXED", type: "Socks5", user: null, local, ruleList: null, target: null };
  return {
    metadata: {
      id,
      network: "tcp",
      source: { ip: "192.168.1.5" as Ip, port: 50_000 },
      destination: { host, ip: null, port: 443 },
      inbound,
      dscp: null,
      acceptedAtMs: 1_767_323_045_678,
    },
    settled: null,
    destination: { host, ip: null, port: 443 },
    sniffedHost: "",
    destinationIp: null,
    dnsMode: "normal",
    process: { path: "/usr/bin/curl", name: "curl", uid: 1000 },
    remoteHost: "203.0.113.9",
    sourceGeoIp: null,
    destinationGeoIp: null,
    sourceAsn: "",
    destinationAsn: "",
    chain: ["Proxy", "Auto", "Node 1"],
    providerChain: ["", "", ""],
    rule: { apiType: "DomainSuffix", payload: "example.com" },
    uploadBytes: 1024,
    downloadBytes: 20_480,
  };
}
