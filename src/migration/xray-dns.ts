/** `dns` of Xray (infra/conf/dns.go) as `dns` and `hosts`. */
import { shown, type LeftOut } from "./imported.ts";
import { countOf, listOf, objectOf, textOf, textsOf, type Json } from "./json.ts";

/** Empty where there is none. */
export function dnsOf(xray: Json, where: string, report: LeftOut): Json {
  const dns = objectOf(xray["dns"]);
  if (Object.keys(dns).length === 0) return {};
  const place = `${where}dns`;
  const general: string[] = [];
  const policy: Record<string, string[]> = {};
  for (const [at, item] of listOf(dns["servers"]).entries()) {
    const at2 = `${place}.servers[${at}]`;
    const { address, port, domains } = serverOf(item);
    const server = nameserver(address, port);
    if (server === null) {
      report.add(at2, `${shown(address) || "it"} is no nameserver of ours`);
      continue;
    }
    if (domains.length === 0) general.push(server);
    for (const domain of domains) {
      const key = policyKey(domain);
      if (key === null) report.add(at2, `names like ${shown(domain)} cannot be given to one nameserver`);
      else (policy[key] ??= []).push(server);
    }
    for (const member of ["expectIPs", "expectedIPs", "unexpectedIPs", "clientIp"])
      if (objectOf(item)[member] !== undefined) report.add(`${at2}.${member}`, "is not taken");
  }
  const hosts = hostsOf(objectOf(dns["hosts"]), `${place}.hosts`, report);
  return {
    dns: {
      enable: true,
      nameserver: general.length === 0 ? ["system"] : general,
      ...(general.some(hasName) ? { "default-nameserver": ["system"] } : {}),
      ...(Object.keys(policy).length === 0 ? {} : { "nameserver-policy": policy }),
      ...(textOf(dns["queryStrategy"]).toLowerCase() === "useipv4" ? { ipv6: false } : {}),
    },
    ...(Object.keys(hosts).length === 0 ? {} : { hosts }),
  };
}

function serverOf(item: unknown) {
  if (typeof item === "string") return { address: item, port: 0, domains: [] };
  const server = objectOf(item);
  const { address, port, domains } = server;
  return { address: textOf(address), port: countOf(port), domains: textsOf(domains) };
}

/** Null: there is no such nameserver here. */
function nameserver(address: string, port: number): string | null {
  if (address === "localhost") return "system";
  const [, scheme = "", rest = ""] = /^(https|h2c|tcp|quic|tls)(?:\+local)?:\/\/(.+)$/.exec(address) ?? [];
  if (scheme === "h2c" || (scheme === "" && !/^[\da-f.:]+$/i.test(address))) return null;
  if (scheme !== "") return `${scheme}://${rest}`;
  const host = address.includes(":") ? `[${address}]` : address;
  return port === 0 ? host : `${host}:${port}`;
}

/** Whether its own name has to be resolved first. */
function hasName(server: string): boolean {
  const host = /^[a-z]+:\/\/(\[[^\]]*\]|[^/:]+)/.exec(server)?.[1] ?? "";
  return /[g-z]/i.test(host) && !host.startsWith("[");
}

function policyKey(domain: string): string | null {
  const [, kind = "", name = ""] = /^(?:([a-z]+):)?(.+)$/.exec(domain) ?? [];
  if (kind === "full") return name;
  if (kind === "domain" || kind === "") return `+.${name}`; // a bare text is one part of a name there; most mean its end
  return kind === "geosite" ? `geosite:${name}` : null;
}

function hostsOf(hosts: Json, where: string, report: LeftOut): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  for (const [domain, value] of Object.entries(hosts)) {
    const key = domain.startsWith("full:") ? domain.slice("full:".length) : domain;
    const suffix = key.startsWith("domain:") ? `+.${key.slice("domain:".length)}` : key;
    const values = textsOf(value);
    const [first = ""] = values;
    if (/^(?:regexp|keyword|geosite|ext):/.test(suffix) || values.length === 0 || first.startsWith("#"))
      report.add(where, `${shown(domain)} is not taken`);
    else found[suffix] = values.length === 1 ? first : values;
  }
  return found;
}
