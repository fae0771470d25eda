import type { Delays } from "#core/delays.ts";
import type { Health, TestPlan } from "#core/group.ts";
import type { Outbound } from "#core/outbound.ts";
import { probe, statusIn } from "#net/http-probe.ts";

/** Delay tests whose results are kept in `delays`; `unified` is asked at each test, because it can change live. */
export function openHealth(delays: Delays, unified: () => boolean): Health {
  return {
    delays,
    async test(
      member: Outbound,
      { url, timeoutMs, expected }: TestPlan,
      signal: AbortSignal,
    ): Promise<number> {
      try {
        const { delayMs, status } = await probe(member, { url, timeoutMs, unified: unified(), signal });
        delays.record(member.name, url, delayMs, statusIn(status, expected));
        return delayMs;
      } catch (error) {
        // A test that we gave up ourselves says nothing about the node.
        if (!signal.aborted) delays.record(member.name, url, 0, false);
        throw error;
      }
    },
  };
}
