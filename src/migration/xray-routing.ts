/** `routing` of Xray (infra/conf/router.go) as rules. */
import { shown, type LeftOut } from "./imported.ts";
import { listOf, objectOf, objectsOf, textOf, textsOf, type Json } from "./json.ts";

/** What the way of an outbound is called here; others are refused, so that nothing leaves by another way than it should. */
const TARGETS: Readonly<Record<string, string>> = { freedom: "DIRECT", blackhole: "REJECT" };
const REFUSED = "REJECT";

/** The last one is MATCH: by the first outbound, as there. */
export function rulesOf(xray: Json, where: string, report: LeftOut): readonly string[] {
  const outbounds = objectsOf(xray["outbounds"]);
  const targets = new Map<string, string>();
  for (const [at, outbound] of outbounds) {
    const protocol = textOf(outbound["protocol"]);
    const target = TARGETS[protocol];
    if (target === undefined)
      report.add(
        `${where}outbounds[${at}]`,
        `${shown(protocol)} is not taken; what would leave by it is refused`,
      );
    targets.set(textOf(outbound["tag"]), target ?? REFUSED);
  }
  if (xray["dns"] !== undefined) report.add(`${where}dns`, "is not taken");
  const routing = objectOf(xray["routing"]);
  if (listOf(routing["balancers"]).length > 0)
    report.add(`${where}routing.balancers`, "groups are not taken");
  const api = textOf(objectOf(xray["api"])["tag"]);
  const strategy = textOf(routing["domainStrategy"]).toLowerCase();
  const resolves = strategy === "ipondemand" || strategy === "ipifnonmatch";
  if (strategy === "ipifnonmatch")
    report.add(`${where}routing.domainStrategy`, "names are resolved by the first rule about addresses");
  const rules = objectsOf(routing["rules"]).flatMap(([at, rule]) => {
    const tag = textOf(rule["outboundTag"]);
    if (tag !== "" && tag === api) return []; // of its own API, which has no equal that a rule leads to
    const place = `${where}routing.rules[${at}]`;
    const target = targets.get(tag) ?? REFUSED;
    if (!targets.has(tag)) report.add(place, "its outbound is not there; what it matches is refused");
    return linesOf(rule, target, { where: place, report, resolves });
  });
  const first = targets.get(textOf(outbounds[0]?.[1]["tag"])) ?? "DIRECT";
  return [...rules, `MATCH,${first}`];
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
  const [only, ...others] = conditions;
  if (only === undefined) return [];
  if (others.length === 0) return only.map((item) => withTarget(item, target));
  if (conditions.flat().some((item) => /[()]/.test(item))) {
    place.report.add(
      place.where,
      "brackets in a regular expression beside other members; the rule is left out",
    );
    return [];
  }
  const parts = conditions.map((items) => (items.length === 1 ? `(${items.join("")})` : `(${anyOf(items)})`));
  return [`AND,(${parts.join(",")}),${target}`];
}

function isEmpty(value: unknown): boolean {
  return value === "" || value === null || (Array.isArray(value) && value.length === 0);
}

function anyOf(items: readonly string[]): string {
  return `OR,(${items.map((item) => `(${item})`).join(",")})`;
}

/** The target stands in front of `no-resolve`. */
function withTarget(item: string, target: string): string {
  return item.endsWith(NO_RESOLVE)
    ? `${item.slice(0, -NO_RESOLVE.length)},${target}${NO_RESOLVE}`
    : `${item},${target}`;
}

const NO_RESOLVE = ",no-resolve";

/** Null: it cannot be said. Empty: it matches everything. */
type Member = (value: unknown, place: Place) => readonly string[] | null;

const domains: Member = (value) => allOf(commaList(value).map(domainItem));
const addresses: Member = (value, { resolves }) =>
  allOf(commaList(value).map((text) => addressItem(text, "", resolves ? "" : NO_RESOLVE)));
const sources: Member = (value) => allOf(commaList(value).map((text) => addressItem(text, "SRC-", "")));
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

function allOf(items: readonly (string | null)[]): readonly string[] | null {
  const read = items.filter((item) => item !== null);
  return read.length === items.length ? read : null;
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

function addressItem(text: string, prefix: string, suffix: string): string | null {
  if (text.startsWith("geoip:")) {
    const country = text.slice("geoip:".length);
    if (country.startsWith("!")) return null;
    return `${prefix}GEOIP,${country === "private" ? "lan" : country}${suffix}`;
  }
  if (!/^[\da-f:.]+(?:\/\d{1,3})?$/i.test(text)) return null;
  const isLong = text.includes(":");
  const network = text.includes("/") ? text : `${text}/${isLong ? 128 : 32}`;
  const type = isLong && prefix === "" ? "IP-CIDR6" : "IP-CIDR";
  return `${prefix}${type},${network}${suffix}`;
}
