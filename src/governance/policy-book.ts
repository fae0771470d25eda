/** The policies in force, ready to answer which of them a session belongs to. */
import type { Neighbours } from "#core/neighbours.ts";
import type { Policy, PolicyBook, QuotaLimits } from "#core/policy.ts";
import type { Decision } from "#core/router.ts";
import type { Rule } from "#core/rule.ts";
import type { Ip, Metadata } from "#core/session.ts";
import { cidrText, type Cidr } from "#net/address/cidr.ts";
import { CidrTable } from "#net/address/cidr-trie.ts";
import type {
  DeviceSettings,
  PolicyLists,
  PolicySettings,
  QuotaSettings,
  RuleSettings,
  TargetSettings,
} from "./settings.ts";
import { defaultId, ruleSignature } from "./signature.ts";
import { itemAt } from "#lib/at.ts";

/** A policy beside what it was made from; disabled ones too. */
export type BookEntry = {
  readonly policy: Policy;
  readonly enabled: boolean;
} & (
  | { readonly dimension: "global"; readonly settings: PolicySettings }
  | { readonly dimension: "device"; readonly settings: DeviceSettings }
  | { readonly dimension: "rule"; readonly settings: RuleSettings; readonly signature: string }
  | { readonly dimension: "target"; readonly settings: TargetSettings }
);

const NONE: readonly Policy[] = [];

/** Every policy of the configuration in its order: global, devices, rules, targets. */
export function entriesOf({ global, devices, rules, targets }: PolicyLists): readonly BookEntry[] {
  const entries: BookEntry[] = [];
  if (global !== null) {
    const policy = policyOf(global, "global", "global", "global");
    entries.push({ dimension: "global", settings: global, enabled: global.enabled, policy });
  }
  for (const settings of devices) {
    const cidrs = settings.sourceCidrs.map(cidrText).join(",");
    const id = settings.id ?? defaultId("device", [settings.mac ?? "", cidrs]);
    const policy = policyOf(settings, "device", id, settings.mac ?? `id ${id}`);
    entries.push({ dimension: "device", settings, enabled: settings.enabled, policy });
  }
  for (const settings of rules) {
    const signature = ruleSignature(settings);
    const policy = policyOf(settings, "rule", `rule-${signature.slice(0, 16)}`, signature);
    entries.push({ dimension: "rule", settings, enabled: settings.enabled, policy, signature });
  }
  for (const settings of targets) {
    const { kind, target } = settings;
    const policy = policyOf(settings, "target", defaultId("target", [kind, target]), `${kind} ${target}`);
    entries.push({ dimension: "target", settings, enabled: settings.enabled, policy });
  }
  return entries;
}

function policyOf(
  { id, name, uploadBps, downloadBps, quota, portal }: PolicySettings,
  dimension: Policy["dimension"],
  fallbackId: string,
  identity: string,
): Policy {
  return {
    id: id ?? fallbackId,
    dimension,
    identity,
    name,
    bitsPerSecond: { upload: uploadBps, download: downloadBps },
    quota: quota === null ? null : limitsOf(quota),
    portal,
  };
}

function limitsOf(quota: QuotaSettings): QuotaLimits | null {
  const { totalBytes, uploadBytes, downloadBytes, windowMs } = quota;
  if (windowMs === null) return null;
  const overage = { upload: quota.overageUploadBps, download: quota.overageDownloadBps };
  return { totalBytes, uploadBytes, downloadBytes, windowSeconds: Math.round(windowMs / 1000), overage };
}

/** The first id that two policies share (made ids may meet given ones); null: all are unique. */
export function repeatedId(entries: readonly BookEntry[]): string | null {
  const seen = new Set<string>();
  for (const { policy } of entries) {
    if (seen.has(policy.id)) return policy.id;
    seen.add(policy.id);
  }
  return null;
}

/** `neighbours`: devices with a hardware address are found by it; null: every device by its networks alone. */
export function openPolicyBook(
  entries: readonly BookEntry[],
  neighbours: Neighbours | null = null,
): PolicyBook {
  return new Book(
    entries.filter(({ enabled }) => enabled),
    neighbours,
  );
}

class Book implements PolicyBook {
  readonly policies: readonly Policy[];
  readonly #global: Policy | null = null;
  readonly #sources: CidrTable;
  /** The device that each network of the table belongs to; devices are sorted. */
  readonly #owners: readonly Policy[];
  readonly #neighbours: Neighbours | null;
  /** Of devices that are found by hardware address. */
  readonly #macs = new Map<string, Policy[]>();
  readonly #byMac = new Set<Policy>();
  readonly #rules = new Map<string, Policy[]>();
  readonly #nodes = new Map<string, Policy[]>();
  readonly #groups = new Map<string, Policy[]>();
  readonly #order = new Map<Policy, number>();
  /** Rules live as long as their configuration: each is hashed once. */
  readonly #signatures = new WeakMap<Rule, string>();

  constructor(entries: readonly BookEntry[], neighbours: Neighbours | null) {
    this.#neighbours = neighbours;
    this.policies = entries.map(({ policy }) => policy);
    const networks: Cidr[] = [];
    const owners: Policy[] = [];
    for (const [at, entry] of entries.entries()) {
      const { policy } = entry;
      this.#order.set(policy, at);
      if (entry.dimension === "global") this.#global = policy;
      else if (entry.dimension === "rule") add(this.#rules, entry.signature, policy);
      else if (entry.dimension === "target")
        add(entry.settings.kind === "proxy" ? this.#nodes : this.#groups, entry.settings.target, policy);
      else {
        for (const cidr of entry.settings.sourceCidrs) {
          networks.push(cidr);
          owners.push(policy);
        }
        const { mac } = entry.settings;
        if (neighbours === null || mac === null) continue;
        add(this.#macs, mac, policy);
        this.#byMac.add(policy);
      }
    }
    this.#sources = new CidrTable(networks);
    this.#owners = owners;
  }

  select(metadata: Metadata, decision: Decision): readonly Policy[] {
    if (this.policies.length === 0) return NONE;
    const chosen: Policy[] = this.#global === null ? [] : [this.#global];
    this.#addDevices(metadata.source.ip, chosen);
    // Of a sub-rule list both count: the line that decided, and the SUB-RULE that connections show.
    for (const rule of [decision.entered, decision.rule])
      if (rule) chosen.push(...(this.#rules.get(this.#signatureOf(rule)) ?? NONE));
    chosen.push(...this.#targetsOf(decision.chain));
    return chosen;
  }

  /** Where the hardware address is known, it alone says which of the devices with one it is: addresses change hands. */
  #addDevices(ip: Ip, chosen: Policy[]): void {
    const mac = this.#byMac.size === 0 ? null : (this.#neighbours?.macOf(ip) ?? null);
    for (let at = this.#sources.lowest(ip); at >= 0; at = this.#sources.lowest(ip, at)) {
      const owner = itemAt(this.#owners, at);
      if (mac !== null && this.#byMac.has(owner)) continue;
      if (chosen.at(-1) !== owner) chosen.push(owner); // networks of one device are adjacent
    }
    if (mac !== null) chosen.push(...(this.#macs.get(mac) ?? NONE));
  }

  #targetsOf(chain: readonly string[]): readonly Policy[] {
    const found = new Set(this.#nodes.get(chain.at(-1) ?? "") ?? NONE);
    for (const name of chain.slice(0, -1))
      for (const policy of this.#groups.get(name) ?? NONE) found.add(policy);
    const index = (policy: Policy): number => this.#order.get(policy) ?? 0;
    return [...found].sort((a, b) => index(a) - index(b));
  }

  #signatureOf(rule: Rule): string {
    const known = this.#signatures.get(rule);
    if (known !== undefined) return known;
    const made = ruleSignature(rule);
    this.#signatures.set(rule, made);
    return made;
  }
}

function add(map: Map<string, Policy[]>, key: string, policy: Policy): void {
  const list = map.get(key);
  if (list === undefined) map.set(key, [policy]);
  else list.push(policy);
}
