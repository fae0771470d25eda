/** The ip rules of one capture in the kernel: put there, taken away, exchanged without a moment in which none captures. */
import type { CaptureOptions, CapturePlan } from "#core/capture.ts";
import {
  addRule,
  deleteRules,
  listRules,
  OUR_PROTOCOL,
  RULE_ACTIONS,
  SystemError,
  type NetlinkSocket,
  type ShownRule,
} from "#platform/netlink.ts";
import { CAPTURE_STEP, policyRules, RULE_SPAN } from "./policy-rules.ts";

export const FAMILIES = [4, 6] as const;
const ABSENT: ReadonlySet<string> = new Set(["EAFNOSUPPORT", "EOPNOTSUPP", "ESRCH", "ENOENT"]);

/** A family that the kernel lacks has nothing. */
export function tolerating(work: () => unknown): void {
  try {
    work();
  } catch (error) {
    if (!(error instanceof SystemError && ABSENT.has(error.code))) throw error;
  }
}

/** The ends of jumps first: before one is there the kernel passes over the jump. */
export function addRules(socket: NetlinkSocket, plan: CapturePlan): void {
  const rules = policyRules(plan);
  const absent = (family: 4 | 6): boolean => (family === 4 ? plan.inet4 : plan.inet6) === null;
  for (const ends of [true, false])
    for (const rule of rules)
      if ((rule.end === "nop") === ends)
        if (absent(rule.family)) tolerating(() => addRule(socket, rule)); // perhaps the kernel has not got the family
        else addRule(socket, rule);
}

/** What captures goes first, then what is left out of it. `protocol`: only rules of that one; null: all. */
export function deleteBlock(socket: NetlinkSocket, first: number, protocol: number | null = null): void {
  const steps = Array.from({ length: RULE_SPAN + 1 }, (_, step) => step);
  for (const family of FAMILIES)
    for (const step of [CAPTURE_STEP, ...steps])
      tolerating(() => deleteRules(socket, family, first + step, protocol));
}

/** Is it one that lets no fake address leave? */
export function refusesFakes({ protocol, action, toBits }: ShownRule): boolean {
  return protocol === OUR_PROTOCOL && action === RULE_ACTIONS.unreachable && toBits > 0;
}

/** Of all families. */
export function shownRules(socket: NetlinkSocket): readonly ShownRule[] {
  const all: ShownRule[] = [];
  for (const family of FAMILIES) tolerating(() => all.push(...listRules(socket, family)));
  return all;
}

/** The rules of `plan` in place of those from `before` on; null: there are none that are known. */
export function exchangeRules(socket: NetlinkSocket, plan: CapturePlan, before: number | null): void {
  const { ruleIndex } = plan.options;
  const beside = Math.max(ruleIndex, before ?? 0) + RULE_SPAN + 1;
  // Beside ours there may be rules of others. Those of a program that was killed here go, too.
  deleteBlock(socket, beside, OUR_PROTOCOL);
  addRules(socket, movedTo(plan, beside));
  if (before !== null) deleteBlock(socket, before);
  deleteBlock(socket, ruleIndex);
  addRules(socket, plan);
  deleteBlock(socket, beside, OUR_PROTOCOL);
}

/** Where the main table is asked: nothing behind it captures. */
const MAIN_PRIORITY = 32_766;

/** Is there room behind the rules for what `exchangeRules` needs? */
export function hasRoom({ ruleIndex }: Pick<CaptureOptions, "ruleIndex">): boolean {
  return ruleIndex + 2 * RULE_SPAN + 1 < MAIN_PRIORITY;
}

function movedTo(plan: CapturePlan, ruleIndex: number): CapturePlan {
  return { ...plan, options: { ...plan.options, ruleIndex } };
}
