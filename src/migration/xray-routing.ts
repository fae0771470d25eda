/** `routing` of Xray (infra/conf/router.go) as rules. */
import type { Protocol } from "#core/protocol.ts";
import { shown, type LeftOut } from "./imported.ts";
import { objectOf, objectsOf, textOf, textsOf, type Json } from "./json.ts";
import { everyOne, networkItem, NO_RESOLVE, ruleLines } from "./rule-text.ts";
import { REFUSED } from "./ways.ts";
import { dnsOf } from "./xray-dns.ts";
import { balancerTag, readWays } from "./xray-outbound.ts";

/** Rules, and the nodes and groups that they lead to. The last rule is MATCH: by the first outbound, as there. */
export function routingOf(
  xray: Json,
  where: string,
  source: { readonly protocols: readonly Protocol[]; readonly report: LeftOut },
): { readonly rules: readonly string[]; readonly keys: Json } {
  const { report } = source;
  const ways = readWays(xray, where, source);
  const routing = objectOf(xray["routing"]);
  const api = textOf(objectOf(xray["api"])["tag"]);
  const strategy = textOf(routing["domainStrategy"]).toLowerCase();
  const resolves = strategy === "ipondemand" || strategy === "ipifnonmatch";
  if (strategy === "ipifnonmatch")
    report.add(`${where}routing.domainStrategy`, "names are resolved by the first rule about addresses");
  const rules = objectsOf(routing["rules"]).flatMap(([at, rule]) => {
    const tag = textOf(rule["outboundTag"]);
    if (tag !== "" && tag === api) return []; // of its own API, which has no equal that a rule leads to
    const place = `${where}routing.rules[${at}]`;
    const named = tag === "" ? balancerTag(textOf(rule["balancerTag"])) : tag;
    const found = named === "" ? undefined : ways.target(named);
    if (found === undefined) report.add(place, "its outbound is not there; what it matches is refused");
    return linesOf(rule, found ?? REFUSED, { where: place, report, resolves });
  });
  const [first] = objectsOf(xray["outbounds"]);
  const last = ways.target(textOf(first?.[1]["tag"])) ?? "DIRECT";
  return {
    rules: [...rules, `MATCH,${last}`],
    keys: { ...ways.keys(), ...dnsOf(xray, where, report) },
  };
}

interface Place {
  readonly where: string;
  readonly report: LeftOut;
  /** Names are resolved for rules about addresses. */
  readonly resolves: boolean;
}

/** Members that say nothing about what the rule matches. */
const SILENT_MEMBERS: ReadonlySet<string> = new Set([
  "type",
  "outboundTag",
  "balancerTag",
  "ruleTag",
  "domainMatcher",
]);

/** A rule matches where each of its members does; a member where one of its items does. */
function linesOf(rule: Json, target: string, place: Place): readonly string[] {
  const conditions: (readonly string[])[] = [];
  for (const [member, value] of Object.entries(rule)) {
    if (SILENT_MEMBERS.has(member) || isEmpty(value)) continue;
    const read = MEMBERS[member];
    const items = read?.(value, place) ?? null;
    if (items === null) {
      place.report.add(`${place.where}.${shown(member)}`, "cannot be said here; the rule is left out");
      return [];
    }
    if (items.length > 0) conditions.push(items);
  }
  const lines = ruleLines(conditions, target);
  if (lines === null)
    place.report.add(
      place.where,
      "brackets in a regular expression beside other members; the rule is left out",
    );
  return lines ?? [];
}

function isEmpty(value: unknown): boolean {
  return value === "" || value === null || (Array.isArray(value) && value.length === 0);
}

/** Null: it cannot be said. Empty: it matches everything. */
type Member = (value: unknown, place: Place) => readonly string[] | null;

const domains: Member = (value) => everyOne(commaList(value).map(domainItem));
const addresses: Member = (value, { resolves }) =>
  everyOne(commaList(value).map((text) => addressItem(text, "", resolves ? "" : NO_RESOLVE)));
const sources: Member = (value) => everyOne(commaList(value).map((text) => addressItem(text, "SRC-", "")));
const ports =
  (type: string): Member =>
  (value) => {
    const text = commaList(textOf(value) || value).join("/");
    return /^[\d/-]+$/.test(text) ? [`${type},${text}`] : null;
  };
const names =
  (type: string): Member =>
  (value) => {
    const items = commaList(value);
    return items.some((item) => /[/,()]|^regexp:/.test(item)) ? null : [`${type},${items.join("/")}`];
  };

const MEMBERS: Readonly<Record<string, Member>> = {
  domain: domains,
  domains,
  ip: addresses,
  source: sources,
  sourceIP: sources,
  port: ports("DST-PORT"),
  sourcePort: ports("SRC-PORT"),
  user: names("IN-USER"),
  inboundTag: names("IN-NAME"),
  network(value) {
    const words = new Set(commaList(value).map((word) => word.toLowerCase()));
    if (words.has("tcp") && words.has("udp")) return [];
    return words.size === 1 && (words.has("tcp") || words.has("udp"))
      ? [`NETWORK,${[...words].join("")}`]
      : null;
  },
};

/** A list, or one text with commas. */
function commaList(value: unknown): readonly string[] {
  const texts = typeof value === "string" ? value.split(",") : textsOf(value);
  return texts.map((text) => text.trim()).filter((text) => text !== "");
}

const DOMAIN_KINDS: Readonly<Record<string, string>> = {
  domain: "DOMAIN-SUFFIX",
  full: "DOMAIN",
  keyword: "DOMAIN-KEYWORD",
  regexp: "DOMAIN-REGEX",
  geosite: "GEOSITE",
};

/** Without a kind it is a part of the name. */
function domainItem(text: string): string | null {
  const [, kind, payload] = /^([a-z-]+):(.+)$/.exec(text) ?? [null, "keyword", text];
  const type = DOMAIN_KINDS[kind ?? ""];
  return type === undefined || payload === undefined ? null : `${type},${payload}`;
}

function addressItem(text: string, prefix: "" | "SRC-", suffix: string): string | null {
  if (text.startsWith("geoip:")) {
    const country = text.slice("geoip:".length);
    if (country.startsWith("!")) return null;
    return `${prefix}GEOIP,${country === "private" ? "lan" : country}${suffix}`;
  }
  return networkItem(text, prefix, suffix);
}
