import type { Delays } from "#core/delays.ts";
import { messageOf } from "#core/errors.ts";
import type { Health, TestPlan } from "#core/group.ts";
import { NO_EVENTS, type NodeEvents } from "#core/events.ts";
import type { Log } from "#core/log.ts";
import { isGroup, type Outbound } from "#core/outbound.ts";
import type { Trust } from "#core/trust.ts";
import { probe, statusIn } from "#net/dial/http-probe.ts";

export interface HealthSettings {
  readonly unified: boolean;
  readonly trust: Trust;
}

/**
 * Delay tests whose results are kept in `delays`, and said at level debug; `settings` is asked at each test, because they
 * can change live.
 */
export function openHealth(
  delays: Delays,
  settings: () => HealthSettings,
  log: Log,
  events: NodeEvents = NO_EVENTS,
): Health {
  const record = (member: Outbound, url: string, delayMs: number, accepted: boolean): void => {
    delays.record(member.name, url, delayMs, accepted);
    if (!isGroup(member)) events.node(member.name, delayMs > 0);
  };
  return {
    delays,
    async test(
      member: Outbound,
      { url, timeoutMs, expected }: TestPlan,
      signal: AbortSignal,
    ): Promise<number> {
      try {
        const { delayMs, status } = await probe(member, { url, timeoutMs, ...settings(), signal });
        const accepted = statusIn(status, expected);
        record(member, url, delayMs, accepted);
        log.debug(
          () =>
            `delay test of ${member.name}: status ${status} in ${delayMs} ms${accepted ? "" : ", not one that is expected"}`,
        );
        return delayMs;
      } catch (error) {
        // A test that we gave up ourselves says nothing about the node.
        if (!signal.aborted) {
          record(member, url, 0, false);
          log.debug(() => `delay test of ${member.name}: ${messageOf(error)}`);
        }
        throw error;
      }
    },
  };
}
