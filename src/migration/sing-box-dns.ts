/** `dns` of sing-box (option/dns.go), of version 1.12 and of those before. */
import { shown, type LeftOut } from "./imported.ts";
import { countOf, objectOf, objectsOf, textOf, textsOf, type Json } from "./json.ts";
import { policyKeys } from "./sing-box-route.ts";
import type { Ways } from "./ways.ts";

/** Empty where there is none. */
export function dnsOf(box: Json, ways: Ways, report: LeftOut): Json {
  const dns = objectOf(box["dns"]);
  const listed = objectsOf(dns["servers"]);
  if (listed.length === 0) return {};
  const servers = new Map<string, string>();
  const fakes: Json[] = [];
  for (const [at, item] of listed) {
    const tag = textOf(item["tag"]);
    const isFake = textOf(item["type"]) === "fakeip" || textOf(item["address"]) === "fakeip";
    const server = isFake ? null : serverText(item, ways);
    if (isFake) fakes.push(item);
    else if (server === null) report.add(`dns.servers[${at}]`, `${shown(tag)} is no nameserver of ours`);
    else servers.set(tag, server);
  }
  const policy = policyOf(box, servers, fakes.length > 0, report);
  const last = textOf(dns["final"]) || [...servers.keys()][0] || "";
  const general = servers.get(last) ?? "system";
  const used = [general, ...Object.values(policy)];
  const range = textOf(fakes[0]?.["inet4_range"]) || textOf(objectOf(dns["fakeip"])["inet4_range"]);
  return {
    dns: {
      enable: true,
      nameserver: [general],
      ...(used.some(hasName) ? { "default-nameserver": ["system"] } : {}),
      ...(Object.keys(policy).length === 0 ? {} : { "nameserver-policy": policy }),
      ...(fakes.length === 0 ? {} : { "enhanced-mode": "fake-ip" }),
      ...(range === "" ? {} : { "fake-ip-range": range }),
      ...(textOf(dns["strategy"]) === "ipv4_only" ? { ipv6: false } : {}),
    },
  };
}

function policyOf(
  box: Json,
  servers: ReadonlyMap<string, string>,
  hasFakes: boolean,
  report: LeftOut,
): Record<string, string> {
  const policy: Record<string, string> = {};
  for (const [at, rule] of objectsOf(objectOf(box["dns"])["rules"])) {
    const where = `dns.rules[${at}]`;
    const server = servers.get(textOf(rule["server"]));
    const keys = policyKeys(rule, box);
    const isFake = hasFakes && server === undefined && hasQueryType(rule);
    if (isFake) continue; // fake addresses are given for all names that no filter excepts
    if (server === undefined || keys === null)
      report.add(where, "only which nameserver is asked for which names can be said here; it is left out");
    else for (const key of keys) policy[key] ??= server; // the first rule decides
  }
  return policy;
}

const hasQueryType = (rule: Json): boolean => textsOf(rule["query_type"]).length > 0;

const PORTS: Readonly<Record<string, number>> = {
  udp: 53,
  tcp: 53,
  tls: 853,
  quic: 853,
  https: 443,
  h3: 443,
};

/** Null: there is no such nameserver here. */
function serverText(item: Json, ways: Ways): string | null {
  const type = textOf(item["type"]);
  const base = type === "" || type === "legacy" ? legacyText(textOf(item["address"])) : typedText(item, type);
  const detour = textOf(item["detour"]);
  const target = detour === "" ? "DIRECT" : (ways.target(detour) ?? "REJECT");
  if (base === null || target === "DIRECT") return base;
  return base.includes("#") ? `${base}&${target}` : `${base}#${target}`;
}

function typedText(item: Json, type: string): string | null {
  if (type === "local" || type === "dhcp") return "system";
  const usual = PORTS[type];
  const host = textOf(item["server"]);
  if (usual === undefined || host === "") return null;
  const port = countOf(item["server_port"]) || usual;
  const at = `${host.includes(":") ? `[${host}]` : host}${port === usual ? "" : `:${port}`}`;
  const path = textOf(item["path"]) || "/dns-query";
  if (type === "h3") return `https://${at}${path}#h3=true`;
  return type === "https" ? `https://${at}${path}` : `${type}://${at}`;
}

function legacyText(address: string): string | null {
  if (address === "local" || address.startsWith("dhcp://")) return "system";
  if (address.startsWith("h3://")) return `https://${address.slice("h3://".length)}#h3=true`;
  if (/^(?:udp|tcp|tls|https|quic):\/\/./.test(address)) return address;
  return /^[\d.]+$|^[\da-f:]+$/i.test(address) ? (address.includes(":") ? `[${address}]` : address) : null;
}

/** Whether its own name has to be resolved first. */
function hasName(server: string): boolean {
  const host = /^[a-z0-9]+:\/\/(\[[^\]]*\]|[^/:#]+)/.exec(server)?.[1] ?? "";
  return /[g-z]/i.test(host) && !host.startsWith("[");
}
