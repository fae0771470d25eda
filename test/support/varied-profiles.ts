/** Profiles as people write them: comments, anchors, flow style, odd indentation, CRLF, tabs in comments, names in Chinese. */
import type { Edit } from "#core/config-edit.ts";
import type { JsonValue } from "#core/control.ts";
import { randomFrom } from "./random.ts";

type Pick = (below: number) => number;
const NAMES = ["香港 01", "🇯🇵 日本", "node-a", "US: fast", "it's", '台湾 "CN2"', "- dash", "null", "007"];
const COMMENTS = ["# 注释\twith a tab", "#", "#no space", "# - DOMAIN,old.example,DIRECT", "# [a, {b: c}]"];

function one<Item>(list: readonly Item[], pick: Pick): Item {
  return list[pick(list.length)] as Item;
}

/** What a profile is written with. */
interface Manner {
  readonly pick: Pick;
  readonly indent: string;
  readonly listIndent: string;
}

function comment({ pick }: Manner, indent: string): readonly string[] {
  return pick(4) === 0 ? [indent + one(COMMENTS, pick)] : pick(8) === 0 ? [""] : [];
}

function trailing({ pick }: Manner): string {
  return pick(4) === 0 ? ` ${one(COMMENTS, pick)}` : "";
}

const quoted = (name: string): string => `"${name.replaceAll('"', '\\"')}"`;

function proxies(manner: Manner, names: readonly string[]): readonly string[] {
  const { pick, listIndent } = manner;
  const lines = names.flatMap((name, at) => {
    const head = comment(manner, listIndent);
    const port = 1000 + at;
    if (pick(2) === 0)
      return [
        ...head,
        `${listIndent}- { name: ${quoted(name)}, type: socks5, server: s${at}.example, port: ${port} }${trailing(manner)}`,
      ];
    return [
      ...head,
      `${listIndent}- name: ${quoted(name)}${trailing(manner)}`,
      ...comment(manner, `${listIndent}  `),
      `${listIndent}  type: socks5`,
      ...(pick(3) === 0 ? [`${listIndent}  <<: *common`] : []),
      `${listIndent}  server: s${at}.example${trailing(manner)}`,
      `${listIndent}  port: ${port}`,
    ];
  });
  return [`proxies:${trailing(manner)}`, ...lines];
}

function groups(manner: Manner, names: readonly string[]): readonly string[] {
  const { pick, indent, listIndent } = manner;
  const members = names.slice(0, 3).map(quoted);
  const inside = `${listIndent}  `;
  const list =
    pick(2) === 0
      ? [`${inside}proxies: [${members.join(", ")}]`]
      : [
          `${inside}proxies: [ # members`,
          ...members.map(
            (name, at) => `${inside}${indent}${name}${at < members.length - 1 || pick(2) === 0 ? "," : ""}`,
          ),
          `${inside}]`,
        ];
  return [
    "proxy-groups:",
    `${listIndent}-${" ".repeat(1)}name: Proxy${trailing(manner)}`,
    `${inside}type: select`,
    ...list,
    ...comment(manner, inside),
    `${listIndent}- {name: Auto, type: url-test, proxies: [${members[0]}], url: 'http://t.example/a', interval: 300}`,
  ];
}

function dns(manner: Manner): readonly string[] {
  const { pick, indent } = manner;
  if (pick(4) === 0)
    return ["dns: {enable: true, nameserver: [1.1.1.1, 8.8.8.8], nameserver-policy: {'+.cn': 223.5.5.5}}"];
  const policy =
    pick(2) === 0
      ? [`${indent}nameserver-policy: {"+.cn": 223.5.5.5, '+.a.example': [1.1.1.1, 8.8.8.8]}`]
      : [
          `${indent}nameserver-policy:${trailing(manner)}`,
          ...comment(manner, indent + indent),
          `${indent}${indent}"+.cn": [223.5.5.5] # ours`,
          `${indent}${indent}'+.a.example':`,
          `${indent}${indent}- 1.1.1.1`,
          `${indent}${indent}- 8.8.8.8`,
        ];
  return [
    "dns:",
    `${indent}enable: true${trailing(manner)}`,
    `${indent}nameserver:`,
    `${indent}${indent}- 1.1.1.1`,
    `${indent}${indent}-   "8.8.8.8"${trailing(manner)}`,
    ...policy,
  ];
}

function rules(manner: Manner): readonly string[] {
  const { pick, listIndent } = manner;
  if (pick(8) === 0) return ["rules: ['DOMAIN,a.example,DIRECT', 'MATCH,Proxy']"];
  const lines = Array.from({ length: 3 + pick(12) }, (_, at) => [
    ...comment(manner, listIndent),
    `${listIndent}- ${pick(5) === 0 ? `'DOMAIN-SUFFIX,r${at}.example,Proxy'` : `DOMAIN-SUFFIX,r${at}.example,DIRECT`}${trailing(manner)}`,
  ]);
  return [`rules:${trailing(manner)}`, ...lines.flat(), `${listIndent}- MATCH,Proxy`];
}

export function variedProfile(seed: number): string {
  const pick = randomFrom(seed * 7919 + 1);
  for (let at = 0; at < 8; at++) pick(2);
  const manner: Manner = { pick, indent: " ".repeat(1 + pick(5)), listIndent: " ".repeat(pick(5)) };
  const names = NAMES.slice(0, 2 + pick(NAMES.length - 2));
  const head = [
    ...(pick(3) === 0 ? ["---"] : []),
    "# 我的配置 \t my profile",
    `mixed-port: 7890${trailing(manner)}`,
    `mode: ${one(["rule", '"rule"', "'global'"], pick)}`,
    "log-level:   info   # spaced",
    `common: &common {udp: true${pick(2) === 0 ? ", tfo: false" : ""}}`,
  ];
  const text = one(["|", ">-", "|+"], pick);
  const blocks = [
    proxies(manner, names),
    groups(manner, names),
    dns(manner),
    [`notes: ${text}`, "  first # no comment", "", "  second: line", ...(pick(2) === 0 ? [""] : [])],
    ...(pick(2) === 0 ? [["listeners: []"]] : pick(2) === 0 ? [["listeners:"]] : []),
  ];
  const order = blocks.toSorted(() => pick(3) - 1);
  const lines = [
    ...head,
    ...order.flatMap((block) => (pick(2) === 0 ? ["", ...block] : block)),
    ...rules(manner),
  ];
  const eol = pick(3) === 0 ? "\r\n" : "\n";
  return lines.join(eol) + (pick(4) === 0 ? "" : eol) + (pick(4) === 0 ? `# the end${eol}` : "");
}

type Members = Readonly<Record<string, JsonValue>>;

function listIn(file: Members, key: string): readonly JsonValue[] {
  const list = file[key];
  return Array.isArray(list) ? list : [];
}

const value = (pick: Pick): JsonValue =>
  one<JsonValue>(
    [1, "x", "yes", "1.5", "a: b", "# c", "中文 ,x]", "", true, [1, "b"], { a: { b: [1] } }, [], {}],
    pick,
  );

/** An edit that makes sense for the file, which is given as plain values. */
export function randomEdit(file: Members, pick: Pick): Edit {
  const ruleLines = listIn(file, "rules");
  const nodes = listIn(file, "proxies");
  const beside = pick(Math.max(1, ruleLines.length));
  const rule = `DOMAIN-KEYWORD,k${pick(1_000_000)},${one(["DIRECT", "Proxy", "REJECT"], pick)}`;
  const name = `${one(NAMES, pick)} ${pick(1_000_000)}`;
  const node = { name, type: "socks5", server: "192.0.2.1", port: 1 + pick(65_000), tls: pick(2) === 0 };
  const kinds: readonly (() => Edit)[] = [
    () => ({ op: "add", path: ["rules"], value: rule, ...(ruleLines.length > 0 ? { before: beside } : {}) }),
    () => ({ op: "add", path: ["rules"], value: rule, ...(ruleLines.length > 0 ? { after: beside } : {}) }),
    () => ({ op: "add", path: ["proxies"], value: node }),
    () => ({
      op: "add",
      path: ["proxy-groups"],
      value: { name, type: "select", proxies: ["DIRECT", name] },
      before: 0,
    }),
    () => ({
      op: "set",
      path: ["dns", "nameserver-policy", `+.p${pick(1_000)}.example`],
      value: one<JsonValue>(["1.1.1.1", ["tls://1.1.1.1", "8.8.8.8"]], pick),
    }),
    () => ({ op: "add", path: ["dns", "nameserver"], value: "https://dns.example/dns-query#Proxy" }),
    () => ({ op: "add", path: ["listeners"], value: { name, type: "mixed", port: 2000 + pick(1_000) } }),
    () => ({ op: "set", path: ["mode"], value: one(["rule", "global", "direct"], pick) }),
    () => ({ op: "set", path: ["log-level"], value: one(["debug", "silent"], pick) }),
    () => ({
      op: "set",
      path: ["proxies", pick(Math.max(1, nodes.length)), "port"],
      value: 1 + pick(65_000),
    }),
    () => ({
      op: "set",
      path: ["proxies", pick(Math.max(1, nodes.length)), one(["udp", "note", "中文 key"], pick)],
      value: value(pick),
    }),
    () => ({ op: "set", path: ["proxy-groups", "Proxy", "proxies"], value: ["DIRECT", name] }),
    () => ({ op: "set", path: ["new-key", "inside", "deep"], value: value(pick) }),
    () => ({ op: "set", path: ["notes"], value: value(pick) }),
    () =>
      ruleLines.length > 0 ? { op: "remove", path: ["rules", beside] } : { op: "remove", path: ["mode"] },
    () => ({ op: "remove", path: ["dns", "nameserver", 0] }),
    () => ({ op: "remove", path: ["proxies", pick(Math.max(1, nodes.length))] }),
    () => ({ op: "remove", path: ["mixed-port"] }),
  ];
  return one(kinds, pick)();
}
