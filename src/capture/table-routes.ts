/** The routes in the routing table of the TUN: pure, from the plan. */
import type { CapturePlan, Prefix } from "#core/capture.ts";
import { everything, prefixesOf, rangesOf, subtract } from "./ranges.ts";

/** Empty where the family has no address. With auto-redirect nftables does the excluding. */
export function tableRoutes({ options, inet4, inet6 }: CapturePlan, family: 4 | 6): readonly Prefix[] {
  if (!options.autoRoute || (family === 4 ? inet4 : inet6) === null) return [];
  const wanted = rangesOf(options.routeAddress, family);
  const whole = wanted.length === 0 ? everything(family) : wanted;
  const without = options.autoRedirect ? [] : rangesOf(options.routeExcludeAddress, family);
  return prefixesOf(subtract(whole, without), family);
}
