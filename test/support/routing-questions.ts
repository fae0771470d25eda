/** Made-up rules and destinations, repeatable by their seed, for programs that must all decide alike. */
import { randomFrom } from "./random.ts";

export const NODES = ["A", "B", "C"] as const;

export interface RoutingCase {
  /** `rules`, `sub-rules`, `rule-providers`, `proxy-groups`, `hosts`, `mode` of a configuration. */
  readonly text: string;
  readonly questions: readonly { readonly host: string; readonly port: number }[];
}

const LABELS = ["a", "b", "ads", "cdn"];
const SITES = ["one.test", "two.test", "deep.two.test"];

export function routingCase(seed: number, questions: number): RoutingCase {
  const below = randomFrom(seed * 7919 + 17);
  const one = <T>(list: readonly T[]): T => list[below(list.length)] as T;
  const several = <T>(count: number, make: (at: number) => T): T[] =>
    Array.from({ length: count }, (_, at) => make(at));
  const name = () => (below(3) === 0 ? one(SITES) : `${one(LABELS)}.${one(SITES)}`);
  const address = () => `203.0.${below(3)}.${below(8)}`;
  const port = () => 80 + below(4);
  const word = () => (below(3) === 0 ? ",no-resolve" : "");
  const atoms: readonly (() => string)[] = [
    () => `DOMAIN,${name()}`,
    () => `DOMAIN-SUFFIX,${name()}`,
    () => `DOMAIN-KEYWORD,${one(LABELS)}.`,
    () => `DOMAIN-WILDCARD,*.${one(SITES)}`,
    () => `DOMAIN-REGEX,^${one(LABELS)}\\.`,
    () => `IP-CIDR,${address()}/${24 + below(9)}${word()}`,
    () => `IP-SUFFIX,0.0.0.${below(8)}/8${word()}`,
    () => `SRC-IP-CIDR,127.0.0.${below(2)}/32`,
    () => `DST-PORT,${port()}-${port() + 1}`,
    () => `NETWORK,${one(["tcp", "udp"])}`,
    () => `RULE-SET,${one(["names", "networks", "mixed"])}${word()}`,
  ];
  const condition = (depth: number): string => {
    const kind = depth === 0 ? 9 : below(9);
    if (kind === 0) return `NOT,((${condition(depth - 1)}))`;
    if (kind > 2) return one(atoms)();
    const parts = several(2 + below(2), () => `(${condition(depth - 1)})`);
    return `${kind === 1 ? "AND" : "OR"},(${parts.join(",")})`;
  };
  const target = () => one([...NODES, "G", "H", "PASS", "PASS-RULE", "REJECT"]);
  const line = (lists: readonly string[]): string => {
    if (lists.length > 0 && below(5) === 0) return `SUB-RULE,(${condition(1)}),${one(lists)}`;
    const made = condition(2);
    const [, type = "", payload = "", options = ""] = /^([^,]+),(.*?)(,no-resolve)?$/.exec(made) ?? [];
    return `${type},${payload},${target()}${options}`;
  };
  const listed = (lines: readonly string[]) => lines.map((text) => `  - '${text}'\n`).join("");
  const text = `
mode: ${below(8) === 0 ? "global" : "rule"}
hosts: { a.one.test: ${address()}, cdn.two.test: b.one.test }
proxy-groups:
  - { name: G, type: select, proxies: [${several(3, () => one(NODES)).join(", ")}] }
  - { name: H, type: select, proxies: [G, ${one(NODES)}], disable-udp: ${below(2) === 0} }
  - { name: GLOBAL, type: select, proxies: [H] }
rule-providers:
  names: { type: inline, behavior: domain, payload: ["+.${name()}", "${name()}"] }
  networks: { type: inline, behavior: ipcidr, payload: ["${address()}/30", "${address()}/32"] }
  mixed: { type: inline, behavior: classical, payload: ["DOMAIN,${name()}", "IP-CIDR,${address()}/31", "DST-PORT,${port()}"] }
sub-rules:
  inner:
${listed(several(2 + below(4), () => line([])))}  outer:
${listed(several(2 + below(4), () => line(["inner"])))}rules:
${listed(several(3 + below(12), () => line(["inner", "outer"])))}  - MATCH,${one(NODES)}
`;
  return {
    text,
    questions: several(questions, () => ({ host: below(3) === 0 ? address() : name(), port: port() })),
  };
}
