/** `route` of sing-box (option/rule.go) as rules. */
import { shown, type LeftOut } from "./imported.ts";
import { objectOf, objectsOf, textOf, type Json } from "./json.ts";
import { allOf, anyOf, everyOne, networkItem, NO_RESOLVE, ruleLines } from "./rule-text.ts";
import { REFUSED, type Ways } from "./ways.ts";

/** The last one is MATCH. */
export function rulesOf(box: Json, ways: Ways, report: LeftOut): readonly string[] {
  const route = objectOf(box["route"]);
  const sets = new Map(objectsOf(route["rule_set"]).map(([, set]) => [textOf(set["tag"]), set]));
  const context: Context = { sets, resolves: false };
  const rules = objectsOf(route["rules"]).flatMap(([at, rule]) => {
    const where = `route.rules[${at}]`;
    const target = targetOf(rule, ways, context);
    if (target === null) return []; // what it says is so here without a rule
    if (target === undefined) {
      const named = textOf(rule["action"]) || "its outbound";
      report.add(where, `${shown(named)} has no equal; the rule is left out`);
      return [];
    }
    const conditions = conditionsOf(rule, context);
    const lines = typeof conditions === "string" ? null : ruleLines(conditions, target);
    if (lines !== null) return lines;
    const why =
      typeof conditions === "string"
        ? `${shown(conditions)} cannot be said here`
        : "brackets in a regular expression beside other members";
    report.add(where, `${why}; the rule is left out`);
    return [];
  });
  const [first] = objectsOf(box["outbounds"]);
  const last = textOf(route["final"]) || textOf(first?.[1]["tag"]);
  return [...rules, `MATCH,${ways.target(last) ?? (last === "" ? "DIRECT" : REFUSED)}`];
}

interface Context {
  readonly sets: ReadonlyMap<string, Json>;
  /** Names are resolved for rules about addresses: an earlier rule said so for all. */
  resolves: boolean;
}

/** Sniffing and the hijacking of DNS are settings here. Undefined: there is no such target. */
function targetOf(rule: Json, ways: Ways, context: Context): string | null | undefined {
  const action = textOf(rule["action"]) || "route";
  if (action === "sniff" || action === "hijack-dns" || action === "route-options") return null;
  if (action === "resolve") {
    context.resolves = true;
    return null;
  }
  if (action === "reject") return textOf(rule["method"]) === "drop" ? "REJECT-DROP" : "REJECT";
  if (action === "direct") return "DIRECT";
  return action === "route" ? ways.target(textOf(rule["outbound"])) : undefined;
}

/** Of rules: what is done; of rule sets: nothing that matches. */
const SILENT: ReadonlySet<string> = new Set([
  "type",
  "action",
  "outbound",
  "method",
  "no_drop",
  "mode",
  "rules",
  "invert",
]);

/** Members that widen one another: a rule holds where one item of one of them does. */
const DESTINATION: ReadonlySet<string> = new Set([
  "domain",
  "domain_suffix",
  "domain_keyword",
  "domain_regex",
  "geosite",
  "geoip",
  "ip_cidr",
  "ip_is_private",
  "rule_set",
]);
const SIDES: readonly ReadonlySet<string>[] = [
  DESTINATION,
  new Set(["source_geoip", "source_ip_cidr", "source_ip_is_private"]),
  new Set(["source_port", "source_port_range"]),
  new Set(["port", "port_range"]),
];

const MOST_DEPTH = 8;

/** The member that cannot be said, or the conditions. */
function conditionsOf(rule: Json, context: Context, depth = 0): readonly (readonly string[])[] | string {
  if (depth > MOST_DEPTH) return "so deep a rule";
  const conditions =
    textOf(rule["type"]) === "logical" ? logical(rule, context, depth) : plain(rule, context, depth);
  if (typeof conditions === "string" || rule["invert"] !== true) return conditions;
  const all = allOf(conditions);
  return all === null || all === "" ? "invert" : [[`NOT,((${all}))`]];
}

function logical(rule: Json, context: Context, depth: number): readonly (readonly string[])[] | string {
  const parts: string[] = [];
  for (const [, inner] of objectsOf(rule["rules"])) {
    const conditions = conditionsOf(inner, context, depth + 1);
    if (typeof conditions === "string") return conditions;
    const all = allOf(conditions);
    if (all === null || all === "") return "rules";
    parts.push(all);
  }
  return textOf(rule["mode"]) === "or" ? [parts] : parts.map((part) => [part]);
}

function plain(rule: Json, context: Context, depth: number): readonly (readonly string[])[] | string {
  const sides = new Map<ReadonlySet<string> | string, string[]>();
  for (const [member, value] of Object.entries(rule)) {
    if (SILENT.has(member) || isEmpty(value)) continue;
    const items = itemsOf(member, value, context, depth);
    if (items === null) return member;
    const side = SIDES.find((one) => one.has(member)) ?? member;
    sides.set(side, [...(sides.get(side) ?? []), ...items]);
  }
  return [...sides.values()].filter((items) => items.length > 0);
}

function isEmpty(value: unknown): boolean {
  return value === "" || value === null || value === false || (Array.isArray(value) && value.length === 0);
}

const TYPES: Readonly<Record<string, string>> = {
  domain: "DOMAIN",
  domain_keyword: "DOMAIN-KEYWORD",
  domain_regex: "DOMAIN-REGEX",
  geosite: "GEOSITE",
  process_name: "PROCESS-NAME",
  process_path: "PROCESS-PATH",
  process_path_regex: "PROCESS-PATH-REGEX",
  user_id: "UID",
  source_mac_address: "SRC-MAC",
};
/** Several texts of these are joined into one condition. */
const JOINED: Readonly<Record<string, string>> = { auth_user: "IN-USER", inbound: "IN-NAME" };
const PORTS: Readonly<Record<string, string>> = {
  port: "DST-PORT",
  port_range: "DST-PORT",
  source_port: "SRC-PORT",
  source_port_range: "SRC-PORT",
};

/** Null: it cannot be said. */
function itemsOf(member: string, value: unknown, context: Context, depth: number): readonly string[] | null {
  const texts = (Array.isArray(value) ? value : [value]).map(textOf);
  const suffix = context.resolves ? "" : NO_RESOLVE;
  const type = TYPES[member];
  if (type !== undefined) return texts.map((text) => `${type},${text}`);
  const joined = JOINED[member];
  if (joined !== undefined)
    return texts.some((text) => /[/,()]/.test(text)) ? null : [`${joined},${texts.join("/")}`];
  const ports = PORTS[member];
  if (ports !== undefined) return portItem(ports, texts);
  if (member === "domain_suffix") return texts.map((text) => `DOMAIN-SUFFIX,${text.replace(/^\./, "")}`);
  if (member === "ip_cidr") return everyOne(texts.map((text) => networkItem(text, "", suffix)));
  if (member === "source_ip_cidr") return everyOne(texts.map((text) => networkItem(text, "SRC-", "")));
  if (member === "ip_is_private") return [`GEOIP,lan${suffix}`];
  if (member === "source_ip_is_private") return ["SRC-GEOIP,lan"];
  if (member === "geoip") return texts.map((text) => `GEOIP,${text === "private" ? "lan" : text}${suffix}`);
  if (member === "source_geoip") return texts.map((text) => `SRC-GEOIP,${text === "private" ? "lan" : text}`);
  if (member === "network") return networkOf(texts);
  return member === "rule_set" ? setItems(texts, context, depth) : null;
}

/** `1000:2000`, `:1000`, `1000:`. */
function portItem(type: string, texts: readonly string[]): readonly string[] | null {
  const ranges = texts.map((text) => {
    const [, from = "", colon = "", to = ""] = /^(\d*)(?:(:)(\d*))?$/.exec(text) ?? [];
    if (from === "" && to === "") return null;
    return colon === "" ? from : `${from || "0"}-${to || "65535"}`;
  });
  const read = everyOne(ranges);
  return read === null ? null : [`${type},${read.join("/")}`];
}

function networkOf(texts: readonly string[]): readonly string[] | null {
  const known = texts.filter((text) => text === "tcp" || text === "udp");
  if (known.length !== texts.length) return null;
  return new Set(known).size === 2 ? [] : [`NETWORK,${known[0]}`];
}

/** Of a set that stands in the file its rules; of those that everybody takes from one place our own database's category. */
function setItems(tags: readonly string[], context: Context, depth: number): readonly string[] | null {
  const found = tags.map((tag) => {
    const set = context.sets.get(tag);
    if (set === undefined) return null;
    if (textOf(set["type"]) === "inline" || set["rules"] !== undefined)
      return inlineItem(set, context, depth);
    const place = textOf(set["url"]) || textOf(set["path"]);
    const [, kind, name] = /\/?(geosite|geoip)-([a-z0-9!@_-]+)\.(?:srs|json)$/i.exec(place) ?? [];
    if (kind === undefined || name === undefined) return null;
    return kind.toLowerCase() === "geosite"
      ? `GEOSITE,${name}`
      : `GEOIP,${name}${context.resolves ? "" : NO_RESOLVE}`;
  });
  return everyOne(found);
}

function inlineItem(set: Json, context: Context, depth: number): string | null {
  const items = objectsOf(set["rules"]).map(([, rule]) => {
    const conditions = conditionsOf(rule, context, depth + 1);
    return typeof conditions === "string" ? null : allOf(conditions) || null;
  });
  const read = everyOne(items);
  return read === null || read.length === 0 ? null : anyOf(read);
}

/** Names of DNS rules as keys of `nameserver-policy`; null: the rule is about something else, too. */
export function policyKeys(rule: Json, box: Json): readonly string[] | null {
  const sets = new Map(
    objectsOf(objectOf(box["route"])["rule_set"]).map(([, set]) => [textOf(set["tag"]), set]),
  );
  const conditions = conditionsOf(withoutServer(rule), { sets, resolves: true });
  if (typeof conditions === "string" || conditions.length !== 1) return null;
  return everyOne((conditions[0] ?? []).map(policyKey));
}

function withoutServer(rule: Json): Json {
  const { server: _server, strategy: _strategy, disable_cache: _cache, rewrite_ttl: _ttl, ...rest } = rule;
  return rest;
}

function policyKey(item: string): string | null {
  const [type = "", payload = ""] = item.split(",");
  if (type === "DOMAIN") return payload;
  if (type === "DOMAIN-SUFFIX") return `+.${payload}`;
  return type === "GEOSITE" ? `geosite:${payload}` : null;
}
