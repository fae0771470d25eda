/** A configuration of sing-box: inbounds with their users, outbounds, rules, DNS. */
import type { Protocol } from "#core/protocol.ts";
import { shown, type Imported, type ImportedListener, type LeftOut } from "./imported.ts";
import { countOf, objectOf, objectsOf, textOf, textsOf, type Json } from "./json.ts";
import { dnsOf } from "./sing-box-dns.ts";
import { listenerOf } from "./sing-box-inbound.ts";
import { readWays } from "./sing-box-outbound.ts";
import { rulesOf } from "./sing-box-route.ts";

interface Source {
  readonly protocols: readonly Protocol[];
  readonly report: LeftOut;
  readonly nowMs: number;
}

/** What of the file is read elsewhere, or is nothing that works here otherwise. */
const READ: ReadonlySet<string> = new Set([
  "$schema",
  "log",
  "inbounds",
  "outbounds",
  "endpoints",
  "route",
  "dns",
]);

export function readSingBox(box: Json, source: Source): Imported {
  const { report } = source;
  const ways = readWays(box, source.protocols, report);
  const listeners = objectsOf(box["inbounds"]).flatMap(([at, inbound]): readonly ImportedListener[] => {
    if (textOf(inbound["type"]) === "tun") return [];
    const listener = listenerOf(inbound, `inbounds[${at}]`, at, source);
    return listener === null ? [] : [listener];
  });
  for (const member of Object.keys(box)) if (!READ.has(member)) report.add(shown(member), "is not taken");
  return {
    listeners,
    rules: rulesOf(box, ways, report),
    keys: { ...tunKeys(box, report), ...sniffKeys(box), ...ways.keys(), ...dnsOf(box, ways, report) },
  };
}

/** The first TUN; another one is a line. */
function tunKeys(box: Json, report: LeftOut): Json {
  const tuns = objectsOf(box["inbounds"]).filter(([, inbound]) => textOf(inbound["type"]) === "tun");
  const [first, ...others] = tuns;
  for (const [at] of others) report.add(`inbounds[${at}]`, "one TUN is taken; this is another");
  if (first === undefined) return {};
  const [, tun] = first;
  const device = textOf(tun["interface_name"]);
  const mtu = countOf(tun["mtu"]);
  if (textsOf(tun["address"]).length + textsOf(tun["inet4_address"]).length > 0)
    report.add(`inbounds[${first[0]}].address`, "the TUN has addresses of its own");
  return {
    tun: {
      enable: true,
      stack: ["gvisor", "system", "mixed"].find((stack) => stack === tun["stack"]) ?? "mixed",
      ...(device === "" ? {} : { device }),
      ...(mtu === 0 ? {} : { mtu }),
      "auto-route": tun["auto_route"] === true,
      "auto-redirect": tun["auto_redirect"] === true,
      "strict-route": tun["strict_route"] === true,
      "auto-detect-interface": objectOf(box["route"])["auto_detect_interface"] !== false,
      "dns-hijack": ["any:53"],
    },
  };
}

/** Rules of sing-box say that it sniffs, inbounds of versions before did. */
function sniffKeys(box: Json): Json {
  const isOn =
    objectsOf(objectOf(box["route"])["rules"]).some(([, rule]) => rule["action"] === "sniff") ||
    objectsOf(box["inbounds"]).some(([, inbound]) => inbound["sniff"] === true);
  if (!isOn) return {};
  return { sniffer: { enable: true, sniff: { HTTP: {}, TLS: {}, QUIC: {} } } };
}
