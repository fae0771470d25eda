/** A router over written rules, with outbounds that are only names, for tests. */
import { NO_NEIGHBOURS } from "./no-neighbours.ts";
import type { Outbound } from "#core/outbound.ts";
import type { Resolver } from "#core/resolver.ts";
import { inboundTypesOf } from "#core/protocol.ts";
import { PROTOCOLS } from "#protocols/index.ts";
import type { Rule, RuleScope } from "#core/rule.ts";
import type { InboundInfo, Ip, Metadata, Network } from "#core/session.ts";
import { LOOPBACK_V4, parseIp, toDestination } from "#net/address/ip.ts";
import { openRouterInSteps } from "#router/router.ts";
import type { RouterEnv, RuleRouter } from "#router/rule-router.ts";
import { ruleTypeOf } from "#router/rules/index.ts";
import { atOnce } from "#lib/steps.ts";

export const ip = (text: string): Ip => parseIp(text) as Ip;

export const EMPTY_SCOPE: RuleScope = {
  ruleSet: () => null,
  geosite: () => null,
  geoip: () => null,
  asn: () => null,
  inboundTypes: inboundTypesOf(PROTOCOLS),
};

/** Rules from lines without commas in their payload, brackets aside: `TYPE,payload,target[,no-resolve][,src]`. */
export function rulesOf(lines: readonly string[], scope = EMPTY_SCOPE, nested = false): readonly Rule[] {
  return lines.map((line, index) => {
    const parts = line.split(",");
    const words = new Set<string>();
    while (/^(no-resolve|src)$/.test(parts.at(-1) as string)) words.add(parts.pop() as string);
    const target = parts.pop() as string;
    const [name = "", ...payload] = parts;
    const type = ruleTypeOf(name);
    if (type === undefined) throw new Error(`no rule type ${name}`);
    const options = { source: words.has("src"), noResolve: words.size > 0 };
    const parsed = type.parse(payload.join(","), options, scope);
    return { index: nested ? -1 : index, type: type.type, apiType: type.apiType, target, ...parsed };
  });
}

/** An outbound that cannot be dialled; `networks` are what it says it carries. */
export function named(name: string, more: Partial<Outbound> = {}): Outbound {
  const refuse = () => Promise.reject(new Error(`${name} is only a name`));
  return {
    name,
    type: "Test",
    networks: new Set<Network>(["tcp", "udp"]),
    connect: refuse,
    associate: refuse,
    [Symbol.asyncDispose]: async () => {},
    ...more,
  };
}

export function groupOf(name: string, member: Outbound): Outbound {
  return Object.assign(named(name), { members: [member], pick: () => member });
}

export const PASS = named("PASS", { passes: "rule", networks: new Set() });
export const PASS_RULE = named("PASS-RULE", { passes: "line", networks: new Set() });
export const TCP = named("TCP-ONLY", { networks: new Set<Network>(["tcp"]) });

/** Names that end in `.test` have the address 192.0.2.1, others none. */
export const TEST_RESOLVER: Resolver = {
  lookup: async (host) => {
    if (!host.endsWith(".test")) throw new Error("no such name");
    return [{ ip: ip("192.0.2.1"), ttlMs: 1000 }];
  },
};

export interface Routing {
  readonly rules: readonly string[];
  readonly subRules?: Readonly<Record<string, readonly string[]>>;
  readonly outbounds?: readonly Outbound[];
  readonly scope?: RuleScope;
  readonly env?: Partial<RouterEnv>;
}

/** Every target that no outbound is given for is an ordinary one of that name. */
export function routing({
  rules,
  subRules = {},
  outbounds = [],
  scope = EMPTY_SCOPE,
  env = {},
}: Routing): RuleRouter {
  const byName = new Map([PASS, PASS_RULE, TCP, ...outbounds].map((outbound) => [outbound.name, outbound]));
  return atOnce(
    openRouterInSteps({
      rules: rulesOf(rules, scope),
      subRules: new Map(Object.entries(subRules).map(([name, lines]) => [name, rulesOf(lines, scope, true)])),
      mode: () => "rule",
      outbound: (name) => byName.get(name) ?? (name.startsWith("NO-") ? null : named(name)),
      global: named("GLOBAL"),
      direct: named("DIRECT"),
      resolver: TEST_RESOLVER,
      processes: { uid: async () => null, process: async () => null },
      neighbours: NO_NEIGHBOURS,
      findProcessMode: "strict",
      nowMs: () => 1000,
      ...env,
    }),
  );
}

/** `host:port` of a session, and what else it has. */
export function session(
  host: string,
  {
    network = "tcp",
    port = 443,
    inbound = {},
  }: { network?: Network; port?: number; inbound?: Partial<InboundInfo> } = {},
): Metadata {
  return {
    id: "test",
    network,
    source: { ip: ip("192.168.1.2"), port: 50000 },
    destination: toDestination(host, port),
    inbound: {
      name: "in",
      type: "Socks5",
      user: null,
      local: { ip: LOOPBACK_V4, port: 7890 },
      ruleList: null,
      target: null,
      ...inbound,
    },
    dscp: null,
    acceptedAtMs: 0,
  };
}
