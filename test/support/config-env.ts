/** A small registry for tests of the configuration, so that they do not hang on what the program speaks today. */
import type { ParseEnv } from "#config/parse.ts";
import { ConfigError } from "#core/errors.ts";
import {
  choice,
  Fault,
  flag,
  int,
  list,
  mapOf,
  maybe,
  name,
  pem,
  scalar,
  secret,
  text,
} from "#core/fields.ts";
import { serverFields } from "#core/node-fields.ts";
import type { GroupKind } from "#core/group.ts";
import type { Protocol } from "#core/protocol.ts";
import { inboundSide, outboundSide } from "#core/protocol.ts";
import type { Matcher, ParsedCondition, RuleOptions, RuleScope, RuleType } from "#core/rule.ts";
import { parseCidr } from "#net/address/cidr.ts";
import * as z from "zod";

const notBuilt = () => Promise.reject(new Error("test protocols open nothing"));

const tlsFields = {
  sni: text().default(""),
  alpn: list(text()).default([]),
  "skip-cert-verify": flag().default(false),
  certificate: pem().default(""),
};

const hex = () =>
  scalar({ type: "string" }, (source) =>
    /^([0-9a-f]{2}){0,8}$/i.test(source) ? source : new Fault("expected up to 8 bytes as hex"),
  );

const socks = z.object({
  ...serverFields,
  username: maybe(text()),
  password: maybe(secret()),
  tls: flag().default(false),
  ...tlsFields,
});

const vless = z.object({
  ...serverFields,
  uuid: name(),
  network: choice(["tcp", "ws", "grpc"]).default("tcp"),
  "ws-opts": maybe(z.object({ path: text().default("/"), headers: mapOf(text()).default({}) })),
  "reality-opts": maybe(z.object({ "public-key": name(), "short-id": hex().default("") })),
  ...tlsFields,
});

const accounts = list(z.object({ username: name(), password: secret() }));

const withUsers = z.object({ users: accounts.optional(), udp: flag().default(true) });

const PROTOCOLS: readonly Protocol[] = [
  { type: "socks5", outbound: outboundSide("Socks5", socks, notBuilt) },
  { type: "vless", outbound: outboundSide("Vless", vless, notBuilt) },
  { type: "direct", outbound: outboundSide("Direct", z.object({}), notBuilt) },
  { type: "http", inbound: inboundSide(withUsers, notBuilt) },
  { type: "socks", inbound: inboundSide(withUsers, notBuilt) },
  { type: "mixed", inbound: inboundSide(withUsers, notBuilt) },
  {
    type: "vless",
    inbound: inboundSide(
      z.object({ users: list(z.object({ uuid: name() })), certificate: pem().default("") }),
      notBuilt,
    ),
    users: {
      label: "VLESS",
      network: "tcp",
      isAdditional: false,
      credential: "uuid",
      flows: [],
      makeCredential: () => "",
      identify: (credential) => credential,
      written: () => [],
      emptied: (options) => options,
      shareLink: () => null,
      decoyLink: "",
    },
  },
];

const kind = (type: string, apiType: string, schema: z.ZodObject): GroupKind => ({
  type,
  apiType,
  schema,
  open: notBuilt,
});

const GROUP_KINDS: readonly GroupKind[] = [
  kind("select", "Selector", z.object({})),
  kind("url-test", "URLTest", z.object({ tolerance: int(0, 65_535).default(0) })),
  kind("fallback", "Fallback", z.object({})),
  kind(
    "load-balance",
    "LoadBalance",
    z.object({
      strategy: choice(["consistent-hashing", "round-robin", "sticky-sessions"]).default("round-robin"),
    }),
  ),
];

const NEVER: Matcher = { reads: [], match: () => false };

type Check = (payload: string, options: RuleOptions, scope: RuleScope) => string | null;

const ruleType = (type: string, check: Check = () => null, allowsOptions = false): RuleType => ({
  type,
  apiType: type,
  allowsOptions,
  parse(payload, options, scope): ParsedCondition {
    const fault = check(payload, options, scope);
    if (fault !== null) throw new ConfigError(fault);
    return { matcher: NEVER, payload };
  },
});

const cidr: Check = (payload) => (parseCidr(payload) === null ? `expected a CIDR, got ${payload}` : null);
const inner: Check = (payload, _options, scope) => {
  for (const [, set] of payload.matchAll(/RULE-SET,([^)]+)\)/g)) scope.ruleSet(set as string);
  return payload.startsWith("((") && payload.endsWith("))") ? null : "expected ((TYPE,payload),…)";
};

const RULE_TYPES: readonly RuleType[] = [
  ruleType("DOMAIN"),
  ruleType("DOMAIN-SUFFIX"),
  ruleType("DOMAIN-REGEX"),
  ruleType("IP-CIDR", cidr, true),
  ruleType("AND", inner),
  ruleType("NOT", inner),
  ruleType("SUB-RULE"),
  ruleType("RULE-SET", () => null, true),
  ruleType("MATCH"),
];

/** Every path below /etc is unsafe here; nothing looks at the disk. */
export function testEnv(changes: Partial<ParseEnv> = {}): ParseEnv {
  return {
    registries: { protocols: PROTOCOLS, groupKinds: GROUP_KINDS, ruleTypes: RULE_TYPES },
    files: {
      resolve(path) {
        if (path.startsWith("/etc")) throw new ConfigError(`path ${path} is not safe; allowed: /home/test`);
        return `/home/test/${path}`;
      },
    },
    userAgent: "clash.meta/test",
    ...changes,
  };
}
