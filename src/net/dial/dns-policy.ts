/** Keys of nameserver policies and items of the fake-IP filter as data (configuration.md §6.4 and §6.6). */
import type { DomainCondition, FakeIpRule } from "#core/dns-options.ts";
import { ConfigError, UnusableError } from "#core/errors.ts";
import { suggestion } from "#lib/nearest-word.ts";
import { parseDomainPattern } from "#lib/domain-pattern.ts";

/** `+.example.org,*.lan`, `geosite:cn,private`, `rule-set:a,b`; prefixes in any case. Throws `ConfigError`. */
export function parseConditions(text: string): readonly DomainCondition[] {
  const prefixed = /^(geosite|rule-set):(.*)$/is.exec(text.trim());
  const parts = (prefixed?.[2] ?? text).split(",").map((part) => part.trim());
  const items = parts.filter((part) => part !== "");
  if (items.length === 0) throw new ConfigError(`"${text}" names no domain`);
  const kind = prefixed?.[1]?.toLowerCase();
  return items.map((item): DomainCondition => {
    if (kind === "geosite") return { kind, category: item };
    if (kind === "rule-set") return { kind, name: item };
    if (parseDomainPattern(item) === null)
      throw new (item.split(".").slice(1).includes("") ? ConfigError : UnusableError)(
        `"${item}" is no domain pattern, expected a.com, *.a.com, .a.com or +.a.com`,
      );
    return { kind: "domain", pattern: item.toLowerCase() };
  });
}

/** Rule types that look at nothing but a name. */
export const NAME_RULE_TYPES: readonly string[] = [
  "DOMAIN",
  "DOMAIN-SUFFIX",
  "DOMAIN-KEYWORD",
  "DOMAIN-REGEX",
  "DOMAIN-WILDCARD",
  "GEOSITE",
  "RULE-SET",
];

const ACTIONS: readonly string[] = ["fake-ip", "real-ip"];

/** A line of `fake-ip-filter` in mode `rule`: `TYPE,payload,action` or `MATCH,action`. Throws `ConfigError`. */
export function parseFakeIpRule(line: string): FakeIpRule {
  const parts = line.split(",").map((part) => part.trim());
  const type = (parts[0] ?? "").toUpperCase();
  const action = (parts.at(-1) ?? "").toLowerCase();
  if (!ACTIONS.includes(action))
    throw new ConfigError(
      `fake-ip-filter rule "${line}" must end in fake-ip or real-ip${suggestion(action, ACTIONS)}`,
    );
  const fake = action === "fake-ip";
  if (type === "MATCH" && parts.length === 2) return { type, payload: "", fake };
  if (!NAME_RULE_TYPES.includes(type))
    throw new ConfigError(
      `fake-ip-filter rule "${line}" needs MATCH or one of ${NAME_RULE_TYPES.join(", ")}${suggestion(type, [...NAME_RULE_TYPES, "MATCH"])}`,
    );
  const payload = parts.slice(1, -1).join(",");
  if (payload === "") throw new ConfigError(`fake-ip-filter rule "${line}" has no payload`);
  return { type, payload, fake };
}
