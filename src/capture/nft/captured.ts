/** The two ways in which a packet is captured. */
import type { CapturePlan } from "#core/capture.ts";

/** What the TUN takes besides TCP, which is redirected. */
export const CARRIED = "{ udp, icmp, ipv6-icmp }";

/** Where the TUN has one family alone, only that one is captured. */
function family({ inet4, inet6 }: CapturePlan): string {
  if (inet4 !== null && inet6 !== null) return "";
  return `meta nfproto ipv${inet4 === null ? 6 : 4} `;
}

export function redirect(plan: CapturePlan): string {
  return `${family(plan)}meta l4proto tcp counter redirect to :${plan.redirectPort}`;
}

export function toTun(plan: CapturePlan): string {
  const { inputMark } = plan.options;
  return `${family(plan)}meta l4proto ${CARRIED} counter meta mark set ${inputMark} ct mark set ${inputMark}`;
}
