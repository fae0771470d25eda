/** The whole table as text: pure, from the plan and the networks around us. */
import type { CapturePlan, Prefix, SteeringMarks } from "#core/capture.ts";
import type { Ip } from "#core/session.ts";
import { familyOf } from "#net/address/ip.ts";
import { braced, prefixElements } from "./elements.ts";
import { exclusions, quoted, type ChainKind } from "./exclusions.ts";
import { CARRIED, redirect, toTun } from "./captured.ts";
import { DIRECT_MARK_CHAIN, PROXY_MARK_CHAIN, setNames, type TableName, UNTRACKED_CHAIN } from "./names.ts";
import { steeringRules } from "./steering.ts";

/** What the sets hold besides what the plan says. */
export interface SetContents {
  readonly local: readonly Prefix[];
  readonly route: readonly Prefix[] | null;
  readonly routeExclude: readonly Prefix[] | null;
  readonly direct: Iterable<Ip>;
  readonly marks: SteeringMarks | null;
}

const FAMILIES = [4, 6] as const;
const KEYWORD = { 4: "ip", 6: "ip6" } as const;

// Numbers, for the names of priorities are not known in every hook. The kernel runs all NAT chains at -100; the number
// orders them among each other, so the port forwardings of others (-100) are decided before ours (-99).
const PRIORITY = { output: -150, prerouting: -99, restore: -98, raw: -300, filter: 0 } as const;

/** `owned`: the table ends with the session that makes it, and no other program can change it (Linux 5.12). */
export function tableText(
  table: TableName,
  plan: CapturePlan,
  contents: SetContents,
  { owned }: { readonly owned: boolean },
): string {
  const lines = [
    ...(owned ? ["flags owner"] : []),
    ...FAMILIES.flatMap((family) => [...prefixSets(contents, family), ...learnedSet(plan, contents, family)]),
    ...(plan.options.kernelDirect ? steering(plan, contents.marks) : []),
    ...(capturesOwn(plan) ? [output(plan), outputUdp(plan), ...boundToDevices(plan)] : []),
    prerouting(plan),
    judged(plan),
    preroutingUdp(plan),
  ];
  return `table ${table} {\n${lines.join("\n")}\n}\n`;
}

/** Also for other tables with the same exclusions. */
export function prefixSets(
  contents: Pick<SetContents, "local" | "route" | "routeExclude">,
  family: 4 | 6,
): readonly string[] {
  const names = setNames(family);
  const interval = (name: string, prefixes: readonly Prefix[] | null): readonly string[] =>
    prefixes === null ? [] : [set(name, family, "flags interval; ", prefixElements(prefixes, family))];
  return [
    ...interval(names.local, contents.local),
    ...interval(names.route, contents.route),
    ...interval(names.routeExclude, contents.routeExclude),
  ];
}

function learnedSet({ options }: CapturePlan, { direct }: SetContents, family: 4 | 6): readonly string[] {
  if (!options.kernelDirect) return [];
  const elements = [...direct].filter((ip) => familyOf(ip) === family);
  return [set(setNames(family).direct, family, "", elements)];
}

function set(name: string, family: 4 | 6, flags: string, elements: readonly string[]): string {
  const filled = elements.length === 0 ? "" : `elements = ${braced(elements)}; `;
  return `set ${name} { type ipv${family}_addr; ${flags}${filled}}`;
}

export function chain(name: string, hook: string | null, rules: readonly string[]): string {
  const head = hook === null ? "" : `type ${hook}; policy accept;\n`;
  return `chain ${name} {\n${head}${rules.join("\n")}\n}`;
}

/** In every TUN with kernel-direct, empty while no classifier runs, so that one can come and go. */
function steering(plan: CapturePlan, marks: SteeringMarks | null): readonly string[] {
  const hooks: Record<string, string> = {
    [UNTRACKED_CHAIN]: `filter hook prerouting priority ${PRIORITY.raw}`,
  };
  return Object.entries(steeringRules(plan, marks)).map(([name, rules]) =>
    chain(name, hooks[name] ?? null, rules),
  );
}

/** Are the programs of this machine captured, too? */
export function capturesOwn({ options: { includeInterface, excludeInterface } }: CapturePlan): boolean {
  return (
    (includeInterface.length === 0 || includeInterface.includes("lo")) && !excludeInterface.includes("lo")
  );
}

function output(plan: CapturePlan): string {
  const kind: ChainKind = { side: "output", does: "nat" };
  return chain("output", `nat hook output priority ${PRIORITY.output}`, [
    `meta mark ${plan.options.outputMark} counter return`,
    ...exclusions(plan, kind),
    ...refusal(plan),
    redirect(plan),
  ]);
}

function outputUdp(plan: CapturePlan): string {
  const { outputMark } = plan.options;
  return chain("output_udp_icmp", `route hook output priority ${PRIORITY.output}`, [
    `meta l4proto != ${CARRIED} return`,
    `meta mark ${outputMark} return`,
    `ct mark ${outputMark} return`, // replies to connections into this machine
    ...exclusions(plan, { side: "output", does: "mark" }),
    ...refusal(plan),
    toTun(plan),
  ]);
}

/**
 * `strict-route`: what the TUN shall have of sockets that are bound to another device. The routing table of the mark has
 * no route for these, and the kernel then sends IPv4 as if the destination were on the link, IPv6 by the main table.
 */
function boundToDevices({ options: { strictRoute, inputMark }, device }: CapturePlan): readonly string[] {
  if (!strictRoute) return [];
  const elsewhere = `oifname != { "lo", ${quoted(device.name)} }`;
  return [
    chain("bound_to_devices", `filter hook postrouting priority ${PRIORITY.filter}`, [
      `meta mark ${inputMark} ${elsewhere} counter drop`,
    ]),
  ];
}

function prerouting(plan: CapturePlan): string {
  return chain("prerouting", `nat hook prerouting priority ${PRIORITY.prerouting}`, [
    ...hook(plan, DIRECT_MARK_CHAIN),
    `iifname ${quoted(plan.device.name)} return`,
    ...exclusions(plan, { side: "prerouting", does: "nat" }),
    ...refusal(plan),
    ...hook(plan, PROXY_MARK_CHAIN),
    redirect(plan),
    toTun(plan),
  ]);
}

const JUDGED_CHAIN = "judged";

/** As NAT does with a flow's first packet: flows that are older than the table show it none. */
function judged(plan: CapturePlan): string {
  const kind: ChainKind = { side: "prerouting", does: "mark" };
  return chain(JUDGED_CHAIN, null, [
    "ct status dnat return", // by others: ours have the mark by now
    ...exclusions(plan, kind),
    ...refusal(plan),
    toTun(plan),
  ]);
}

/**
 * A flow's later packets pass NAT by: connection tracking knows what became of the first. Answers that the TUN gives to
 * a packet of a flow without a conntrack entry begins a new one, and so does one from a host behind a proxy: replies to it are captured.
 */
function preroutingUdp(plan: CapturePlan): string {
  const { inputMark, outputMark } = plan.options;
  const captured = `ct mark ${inputMark}`;
  const left = `meta mark set ${outputMark}`;
  return chain("prerouting_udp_icmp", `filter hook prerouting priority ${PRIORITY.restore}`, [
    `meta l4proto != ${CARRIED} return`,
    ...hook(plan, DIRECT_MARK_CHAIN),
    `iifname ${quoted(plan.device.name)} ct state new ct mark set ${inputMark} return`,
    `iifname ${quoted(plan.device.name)} return`,
    `${captured} ct direction original counter meta mark set ct mark return`,
    ...FAMILIES.map(
      (family) =>
        `${captured} ${KEYWORD[family]} daddr != @${setNames(family).local} counter meta mark set ct mark return`,
    ),
    `${captured} return`, // a late answer to what left before the flow was captured
    `ct mark ${outputMark} counter ${left} return`,
    `ct direction reply ${left} return`, // says nothing about what the flow's own side may do
    `jump ${JUDGED_CHAIN}`,
    `ct mark != ${inputMark} counter ${left} ct mark set ${outputMark}`,
  ]);
}

function hook({ options }: CapturePlan, name: string): readonly string[] {
  return options.kernelDirect ? [`jump ${name}`] : [];
}

/** `strict-route`: packets of a family that the TUN cannot carry are rejected at once, instead of leaving past it. */
function refusal({ options, inet4, inet6 }: CapturePlan): readonly string[] {
  if (!options.strictRoute || (inet4 !== null) === (inet6 !== null)) return [];
  return [`meta nfproto ipv${inet4 === null ? 4 : 6} counter reject with icmpx no-route`];
}
