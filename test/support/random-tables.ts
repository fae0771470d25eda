/** Made-up rule sets over every kind of condition, and sessions to decide by them, repeatable by their seed. */
import type { RuleData, RuleScope } from "#core/rule.ts";
import type { Metadata } from "#core/session.ts";
import { categoryData, countryData, systemData } from "#geodata/address-data.ts";
import { sharedBytes } from "#lib/shared-arrays.ts";
import { atOnce } from "#lib/steps.ts";
import { openCountries, openSystems } from "#net/address/address-records.ts";
import { toDestination } from "#net/address/ip.ts";
import { dataOf, domainList, listInSteps } from "#providers/rule-set/contents.ts";
import { conditionsInSteps } from "#router/condition-list.ts";
import type { RuleRouter } from "#router/rule-router.ts";
import type { FindProcessMode } from "#router/session-facts.ts";
import { encodeMmdb } from "./mmdb-file.ts";
import { randomFrom } from "./random.ts";
import { randomNames, type RandomNames } from "./random-names.ts";
import { EMPTY_SCOPE, groupOf, ip, named, routing, session } from "./routing.ts";

export interface TablesCase {
  /** As it was written, for the message of a failure. */
  readonly text: string;
  readonly router: RuleRouter;
  readonly names: RandomNames;
  readonly findProcessMode: FindProcessMode;
  /** There are conditions that only the thread that parsed them can tell. */
  readonly hasUnknown: boolean;
  /** Another session at every call. */
  readonly session: () => Metadata;
}

const LABELS = ["a", "b", "ads", "cdn"];
const SITES = ["one.test", "two.test", "deep.two.test"];
const TARGETS = ["A", "B", "G", "PASS", "PASS-RULE"];

function shared(bytes: Buffer): Buffer {
  const copy = sharedBytes(bytes.length);
  copy.set(bytes);
  return Buffer.from(copy.buffer);
}

function databases(): Pick<RuleScope, "geoip" | "asn"> {
  const countries = shared(
    encodeMmdb([
      ["203.0.0.0/24", "cn"],
      ["203.0.1.0/29", "us"],
    ]),
  );
  const systems = shared(encodeMmdb([["203.0.0.0/16", { autonomous_system_number: 7 }]]));
  const country = { find: openCountries(countries), bytes: countries };
  const system = { find: openSystems(systems), bytes: systems };
  const category = atOnce(dataOf(atOnce(listInSteps(["203.0.2.0/29"], "ipcidr")).list));
  return {
    geoip: (code) => (code === "own" ? categoryData(category, "own") : countryData(country, code)),
    asn: (number) => systemData(system, number),
  };
}

export function tablesCase(seed: number): TablesCase {
  const below = randomFrom(seed * 7919 + 31);
  const one = <T>(list: readonly T[]): T => list[below(list.length)] as T;
  const several = <T>(count: number, make: (at: number) => T): T[] =>
    Array.from({ length: count }, (_, at) => make(at));
  const name = () => (below(3) === 0 ? one(SITES) : `${one(LABELS)}.${one(SITES)}`);
  const address = () =>
    below(6) === 0
      ? `2001:db8::${below(8)}`
      : below(8) === 0
        ? `10.0.0.${below(8)}`
        : `203.0.${below(3)}.${below(8)}`;
  const v4 = () => `203.0.${below(3)}.${below(8)}`;
  const network = () =>
    below(5) === 0 ? `2001:db8::${below(8)}/${120 + below(9)}` : `${v4()}/${24 + below(9)}`;
  const port = () => 80 + below(4);
  const word = () => one(["", "", ",no-resolve", ",src"]);
  const hasUnknown = below(4) === 0;
  const listed = new Map<string, RuleData>();
  const scope: RuleScope = {
    ...EMPTY_SCOPE,
    ...databases(),
    ruleSet: (wanted) => listed.get(wanted) ?? null,
    geosite: () => listed.get("site") ?? null,
  };
  const unknown = (): string => (hasUnknown ? `DOMAIN-REGEX,^(?!${one(LABELS)})` : `DOMAIN,${name()}`);
  const atoms: readonly (() => string)[] = [
    () => `DOMAIN,${name()}`,
    () => `DOMAIN-SUFFIX,${name()}`,
    () => `DOMAIN-KEYWORD,${one(LABELS)}.`,
    () => `DOMAIN-WILDCARD,*.${one(SITES)}`,
    () => `DOMAIN-REGEX,^${one(LABELS)}\\.`,
    unknown,
    () => `GEOSITE,${one(["", "!"])}x`,
    () => `GEOIP,${one(["", "!"])}${one(["cn", "us", "own", "lan"])}${word()}`,
    () => `SRC-GEOIP,${one(["cn", "lan"])}`,
    () => `IP-ASN,${one([7, 8])}${word()}`,
    () => `IP-CIDR,${network()}${word()}`,
    () => `SRC-IP-CIDR,192.168.1.${below(4)}/31`,
    () => `IP-SUFFIX,0.0.0.${below(8)}/8${word()}`,
    () => `DST-PORT,${port()}-${port()}`,
    () => `SRC-PORT,50000-5000${below(4)}`,
    () => `IN-PORT,789${below(2)}`,
    () => `IN-TYPE,${one(["SOCKS", "HTTPS/SOCKS4", "REDIR"])}`,
    () => `IN-NAME,${one(["in", "other/in", "other"])}`,
    () => `IN-USER,${one(["alice", "bob/carol"])}`,
    () => `NETWORK,${one(["tcp", "udp"])}`,
    () => `DSCP,${below(64)}`,
    () => `UID,${below(3)}`,
    () => `PROCESS-NAME,${one(["curl", "wget"])}`,
    () => `RULE-SET,${one(["names", "networks", "mixed", "none"])}${word()}`,
  ];
  /** Conditions inside of others have their words as one payload. */
  const condition = (depth: number): string => {
    const kind = depth === 0 ? 9 : below(9);
    if (kind === 0) return `NOT,((${condition(depth - 1)}))`;
    if (kind > 2) return one(atoms)();
    const parts = several(2 + below(2), () => `(${condition(depth - 1)})`);
    return `${kind === 1 ? "AND" : "OR"},(${parts.join(",")})`;
  };
  const line = (lists: readonly string[]): string => {
    if (lists.length > 0 && below(6) === 0) return `SUB-RULE,(${condition(1)}),${one(lists)}`;
    const made = condition(2);
    const [, body = "", words = ""] = /^(.*?)((?:,no-resolve|,src)?)$/.exec(made) ?? [];
    return made.endsWith(")") ? `${made},${one(TARGETS)}` : `${body},${one(TARGETS)}${words}`;
  };
  /** Long enough for a table. */
  const run = (): string[] => {
    const kind = one([
      () => `DOMAIN,${name()}`,
      () => `DOMAIN-SUFFIX,${name()}`,
      () => `IP-CIDR,${network()}`,
    ]);
    const words = one(["", ",no-resolve"]);
    return several(6 + below(4), () => {
      const made = kind();
      return `${made},${one(TARGETS)}${made.startsWith("IP") ? words : ""}`;
    });
  };
  listed.set("names", atOnce(dataOf(domainList([`+.${name()}`, name(), `*.${one(SITES)}`]).list)));
  listed.set("networks", atOnce(dataOf(atOnce(listInSteps([network(), network()], "ipcidr")).list)));
  listed.set(
    "site",
    atOnce(conditionsInSteps([`DOMAIN-SUFFIX,${name()}`, `DOMAIN-KEYWORD,${one(LABELS)}`], scope, () => {})),
  );
  const conditions = [...several(7, () => `DOMAIN,${name()}`), `IP-CIDR,${network()}`, `DST-PORT,${port()}`];
  listed.set("mixed", atOnce(conditionsInSteps(conditions, scope, () => {})));
  const rules = [...several(below(12), () => line(["inner", "outer"])), ...run(), line(["inner"]), ...run()];
  if (below(2) === 0) rules.push("MATCH,B");
  const subRules = {
    inner: [...several(2 + below(4), () => line([])), ...run()],
    outer: several(3, () => line(["inner"])),
  };
  const findProcessMode = one(["off", "strict"] as const);
  const names = randomNames(seed);
  const { resolver } = names;
  const prepare = ({ destination }: Metadata) => {
    const { refusal: _, ...prepared } = names.prepare(destination);
    return prepared;
  };
  const router = routing({
    rules,
    subRules,
    scope,
    outbounds: [Object.assign(groupOf("G", named("B")), { isSteady: true as const })],
    env: { findProcessMode, resolver, prepare },
  });
  if (below(3) === 0) router.disable(new Map(rules.map((_, at) => [at, below(4) === 0])));
  const made = (): Metadata => {
    const host = one([name, address])();
    const { source, ...rest } = session(host, { port: port() });
    const known = below(4) === 0 && rest.destination.host !== null ? { ip: ip(v4()) } : {};
    return {
      ...rest,
      source: { ip: ip(below(3) === 0 ? `192.168.1.${below(4)}` : v4()), port: source.port + below(5) },
      destination: { ...toDestination(host, port()), ...known },
      inbound: {
        ...rest.inbound,
        name: one(["in", "other"]),
        type: one(["Socks5", "Socks4", "HTTPS", "Redir"]),
        user: one([null, null, "alice", "bob"]),
        local: { ...rest.inbound.local, port: 7890 + below(2) },
        ruleList: one([null, null, "inner", "outer"]),
      },
    };
  };
  return {
    text: `seed ${seed}\n${rules.join("\n")}\n${JSON.stringify(subRules)}`,
    router,
    names,
    hasUnknown,
    findProcessMode,
    session: made,
  };
}
