import type { Delays } from "#core/delays.ts";
import type { Health, TestPlan } from "#core/group.ts";
import type { Outbound } from "#core/outbound.ts";
import type { Trust } from "#core/trust.ts";
import { probe, statusIn } from "#net/dial/http-probe.ts";

export interface HealthSettings {
  readonly unified: boolean;
  readonly trust: Trust;
}

/** Delay tests whose results are kept in `delays`; `settings` is asked at each test, because they can change live. */
export function openHealth(delays: Delays, settings: () => HealthSettings): Health {
  return {
    delays,
    async test(
      member: Outbound,
      { url, timeoutMs, expected }: TestPlan,
      signal: AbortSignal,
    ): Promise<number> {
      try {
        const { delayMs, status } = await probe(member, { url, timeoutMs, ...settings(), signal });
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
