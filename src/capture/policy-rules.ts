/** Which ip rules bring traffic to the table of the TUN: pure, from the plan. */
import type { CapturePlan, Prefix, TunAddress } from "#core/capture.ts";
import type { Range } from "#core/ranges.ts";
import { ipOf, bytesOfIp } from "#net/address/ip.ts";
import { MAIN_TABLE, type IpRule } from "#platform/netlink.ts";
import { maskedPrefix } from "./ranges.ts";

/** Priorities from `ruleIndex` on that belong to a capture; the last one is where a jump ends. */
export const RULE_SPAN = 10;
/** What leads all traffic to the TUN. */
export const CAPTURE_STEP = 7;
/** Where what is not captured goes on, if there are fake addresses: these go nowhere. */
const FAKE_STEP = 8;
const NO_SOURCE = { bytes: new Uint8Array(4), bits: 32 };
const MOST_UID = 0xffff_fffe;
const DNS_PORT = 53;

type Conditions = Omit<IpRule, "family" | "priority">;

export function policyRules(plan: CapturePlan): readonly IpRule[] {
  if (!plan.options.autoRoute) return [];
  return ([4, 6] as const).flatMap((family) => {
    const address = family === 4 ? plan.inet4 : plan.inet6;
    if (plan.options.autoRedirect) return address === null ? [] : markRules(plan, family);
    if (address !== null) return [...routingRules(plan, family, address), ...lastRules(plan, family)];
    const closed = plan.options.strictRoute ? closedFamily(plan, family) : [];
    return closed.length === 0 && fakesOf(plan, family).length === 0
      ? []
      : [...closed, ...lastRules(plan, family)];
  });
}

/** With auto-redirect, nftables marks what the TUN shall have, and what left this program. */
function markRules({ options }: CapturePlan, family: 4 | 6): readonly IpRule[] {
  const { ruleIndex: first, tableIndex: table } = options;
  const after = first + 2;
  return [
    { family, priority: first, mark: options.outputMark, goto: after },
    { family, priority: first + 1, mark: options.inputMark, table },
    { family, priority: after, end: "nop" },
    { family, priority: options.fallbackRuleIndex, table }, // reached where main has no default route
  ];
}

/** Without nftables: who sent it and where to is all that a rule can see. */
function routingRules(plan: CapturePlan, family: 4 | 6, address: TunAddress): readonly IpRule[] {
  const { options, device } = plan;
  const table = options.tableIndex;
  const own = maskedPrefix(address.address);
  const end = endOf(plan, family);
  const at = ruleMaker(options.ruleIndex, family);
  // Networks that were asked for go before those of main. What is left of the world without the excluded ones does not:
  // it, too, is made of routes longer than the default one.
  const asked = options.routeAddress.some(({ bytes }) => bytes.length === (family === 4 ? 4 : 16));
  return [
    ...filters(plan, family),
    // Out of the TUN: on its way already. The name may not be known yet.
    ...(device.name === "" ? [] : [at(4, { inDevice: device.name, goto: options.ruleIndex + RULE_SPAN })]),
    at(5, { to: own, table }),
    ...fakesOf(plan, family).map((to) => at(5, { to, table })),
    ...(asked ? [at(5, { table, suppress: 0 })] : []),
    at(6, { not: true, destinationPort: DNS_PORT, table: MAIN_TABLE, suppress: 0 }), // known networks stay direct
    ...(family === 4 ? capture4(own, table) : capture6(own, table, end)).map((rule) =>
      at(CAPTURE_STEP, rule),
    ),
  ];
}

function fakesOf({ fakeRanges }: CapturePlan, family: 4 | 6): readonly Prefix[] {
  return fakeRanges.filter(({ bytes }) => bytes.length === (family === 4 ? 4 : 16));
}

function endOf(plan: CapturePlan, family: 4 | 6): number {
  return plan.options.ruleIndex + (fakesOf(plan, family).length === 0 ? RULE_SPAN : FAKE_STEP);
}

/**
 * Fake addresses that are not captured, or not any more, leave by no device. The kernel asks the same rules about the way
 * back of what comes out of the TUN: of IPv4, such questions look like packets made here that have a source already.
 */
function lastRules(plan: CapturePlan, family: 4 | 6): readonly IpRule[] {
  const { ruleIndex } = plan.options;
  const at = ruleMaker(ruleIndex, family);
  const fakes = fakesOf(plan, family);
  const own = family === 4 ? plan.inet4 : plan.inet6;
  const last = at(RULE_SPAN, { end: "nop" });
  if (fakes.length === 0) return [last];
  const made: Conditions = { inDevice: "lo" };
  return [
    at(FAKE_STEP, { end: "nop" }),
    ...(own === null
      ? []
      : [at(FAKE_STEP, { to: maskedPrefix(own.address), table: MAIN_TABLE, suppress: 0 })]), // the TUN's own network
    ...(family === 4
      ? [
          ...fakes.map((to) => at(FAKE_STEP, { ...made, from: NO_SOURCE, to, end: "unreachable" })),
          at(FAKE_STEP, { ...made, goto: ruleIndex + RULE_SPAN }),
        ]
      : []),
    ...fakes.map((to) => at(FAKE_STEP + 1, { to, end: "unreachable" })),
    last,
  ];
}

/** Of the packets made here only those without a source address yet, or with the TUN's. */
function capture4(own: Prefix, table: number): readonly Conditions[] {
  return [
    { not: true, inDevice: "lo", table },
    { inDevice: "lo", from: NO_SOURCE, table },
    { inDevice: "lo", from: own, table },
  ];
}

/** A rule with a source never matches a packet without one, so two halves mean: it has a source. */
function capture6(own: Prefix, table: number, end: number): readonly Conditions[] {
  const halves = ["::", "8000::"].map((text) => ({ bytes: bytesOfIp(ipOf(text)), bits: 1 }));
  return [
    { inDevice: "lo", from: own, table },
    ...halves.map((from) => ({ inDevice: "lo", from, goto: end })),
    { table },
  ];
}

/** `strict-route`: nothing of a family that the TUN cannot carry leaves past it. */
function closedFamily(plan: CapturePlan, family: 4 | 6): readonly IpRule[] {
  const at = ruleMaker(plan.options.ruleIndex, family);
  return [...filters(plan, family), at(3, { end: "unreachable" })];
}

/** Users and devices that are left out, at the first three priorities. */
function filters(plan: CapturePlan, family: 4 | 6): readonly IpRule[] {
  const { options } = plan;
  const at = ruleMaker(options.ruleIndex, family);
  const end = endOf(plan, family);
  const rules = leftOut(options.includeUid, options.excludeUid).map((uid) => at(0, { uid, goto: end }));
  for (const inDevice of options.excludeInterface) rules.push(at(1, { inDevice, goto: end }));
  if (options.includeInterface.length === 0) return rules;
  for (const inDevice of options.includeInterface)
    rules.push(at(1, { inDevice, goto: options.ruleIndex + 3 }));
  return [...rules, at(2, { goto: end }), at(3, { end: "nop" })];
}

function ruleMaker(first: number, family: 4 | 6): (step: number, rule: Conditions) => IpRule {
  return (step, rule) => ({ family, priority: first + step, ...rule });
}

/** User ids that are not captured. Given a list of captured ones, all others. */
export function leftOut(include: readonly Range[], exclude: readonly Range[]): readonly Range[] {
  const out = [...exclude];
  if (include.length > 0) {
    let from = 0;
    for (const range of include.toSorted((a, b) => a.from - b.from)) {
      if (range.from > from) out.push({ from, to: range.from - 1 });
      from = Math.max(from, range.to + 1);
    }
    if (from <= MOST_UID) out.push({ from, to: MOST_UID });
  }
  return out;
}
