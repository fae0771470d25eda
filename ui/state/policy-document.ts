/** The document of traffic control while it is edited: policies by key instead of in lists, so that two edits can be merged. */
import type {
  GovernanceDocument,
  PolicyDocument,
  PolicyKind,
  PolicyStatus,
} from "#ui/api/governance-types.ts";
import { WordedError, type Words } from "#ui/words/words.ts";
import type { Json } from "./merge.ts";

/** Where each kind stands in the document. */
const LISTS = { device: "devices", rule: "rules", target: "targets" } as const;
export type ListKind = keyof typeof LISTS;

/** Its id, or what the program makes the id of. */
export function keyOf(kind: PolicyKind, policy: PolicyDocument): string {
  if (policy.id !== undefined) return policy.id;
  if (kind === "device") return [policy.mac ?? "", ...(policy["source-cidrs"] ?? [])].join(" ");
  return [policy.kind, policy.type, policy.payload, policy.target].filter(Boolean).join(" ");
}

export function policiesOf(document: GovernanceDocument, kind: PolicyKind): readonly PolicyDocument[] {
  if (kind === "global") return document.global === undefined ? [] : [document.global];
  return document[LISTS[kind]] ?? [];
}

/**
 * With one policy put in the place of another; null as the old one adds, null as the new one removes. Throws an `Error`
 * where what is added would take the place of the only one that there can be.
 */
export function withPolicy(
  document: GovernanceDocument,
  kind: PolicyKind,
  old: PolicyDocument | null,
  next: PolicyDocument | null,
): GovernanceDocument {
  if (kind === "global") {
    if (old === null && document.global !== undefined) throw new WordedError((t) => t("policies.isThere"));
    const { global: _, ...rest } = document;
    return next === null ? (rest as GovernanceDocument) : { ...document, global: next };
  }
  const list = policiesOf(document, kind);
  const key = old === null ? null : keyOf(kind, old);
  const changed = list.flatMap((policy) => {
    if (keyOf(kind, policy) !== key) return [policy];
    return next === null ? [] : [next];
  });
  if (old === null && next !== null) changed.push(next);
  return { ...document, [LISTS[kind]]: changed };
}

/** For the merge. */
export function toMap(document: GovernanceDocument): Json {
  const lists = Object.entries(LISTS).map(([kind, list]) => {
    const policies = policiesOf(document, kind as ListKind);
    return [list, Object.fromEntries(policies.map((policy) => [keyOf(kind as ListKind, policy), policy]))];
  });
  return { ...document, ...Object.fromEntries(lists) } as Json;
}

export function fromMap(map: Json): GovernanceDocument {
  const document = map as unknown as GovernanceDocument & Record<string, Record<string, PolicyDocument>>;
  const lists = Object.values(LISTS).map((list) => [list, Object.values(document[list] ?? {})]);
  return { ...document, ...Object.fromEntries(lists) } as GovernanceDocument;
}

/** What a person calls it. */
export function titleOf({ t }: Words, { policy }: PolicyStatus): string {
  if (policy.name !== undefined) return policy.name;
  const { kind, rule, target, id } = policy;
  if (kind === "global") return t("policy.global");
  if (kind === "rule") return [rule.type, rule.payload, "→", rule.target].filter(Boolean).join(" ");
  return kind === "target" ? (target.name ?? id) : id;
}

/** The dimensions that people tell apart, each with the key of its name: a target is a node or a group. */
export const DIMENSIONS = [
  ["total", "usage.total"],
  ["device", "usage.devices"],
  ["rule", "usage.rules"],
  ["node", "usage.nodes"],
  ["group", "usage.groups"],
] as const;
export type DimensionName = (typeof DIMENSIONS)[number][0];

/** The key of its name. */
export const dimensionKey = (status: PolicyStatus): (typeof DIMENSIONS)[number][1] => {
  const name = dimensionOf(status);
  return DIMENSIONS.find(([dimension]) => dimension === name)?.[1] ?? "usage.total";
};

export function dimensionOf({ policy }: PolicyStatus): DimensionName {
  if (policy.kind === "global") return "total";
  if (policy.kind !== "target") return policy.kind;
  return policy.target.kind === "group" ? "group" : "node";
}

/** The key of its report series. */
export const seriesOf = ({ policy }: PolicyStatus): string => `${policy.kind}:${policy.id}`;
