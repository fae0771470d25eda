/** `url-test`: the member with the lowest delay among those that are alive. */
import { z } from "zod";
import { int } from "#core/fields.ts";
import { groupKind, type GroupEnv } from "#core/group.ts";
import type { Outbound } from "#core/outbound.ts";
import { TestedGroup } from "./tested-group.ts";

/** How long a choice is kept before the delays are looked at again. */
const CACHE_MS = 10_000;

export class UrlTestGroup extends TestedGroup {
  readonly type = "URLTest";
  readonly #toleranceMs: number;
  readonly #nowMs: () => number;
  #current: Outbound | null = null;
  #chosenAtMs = -Infinity;

  constructor(toleranceMs: number, env: GroupEnv, nowMs: () => number = () => performance.now()) {
    super(env);
    this.#toleranceMs = toleranceMs;
    this.#nowMs = nowMs;
  }

  protected best(): Outbound {
    const current = this.member(this.#current?.name ?? null);
    const fresh = this.#nowMs() - this.#chosenAtMs < CACHE_MS;
    if (current !== undefined && fresh && this.isAlive(current)) return current;
    const chosen = this.#choose(current);
    this.#current = chosen;
    this.#chosenAtMs = this.#nowMs();
    return chosen;
  }

  /** Stays with the current member unless it is dead, or slower than the best by more than the tolerance. */
  #choose(current: Outbound | undefined): Outbound {
    let best: Outbound | null = null;
    let bestMs = Infinity;
    for (const member of this.members) {
      const delayMs = this.#delayMs(member);
      if (delayMs < bestMs) [best, bestMs] = [member, delayMs];
    }
    if (best === null) return current ?? (this.members[0] as Outbound);
    return current !== undefined && this.#delayMs(current) <= bestMs + this.#toleranceMs ? current : best;
  }

  /** Infinity for a member that is dead or was never tested. */
  #delayMs(member: Outbound): number {
    const { alive, history } = this.env.health.delays.for(member.name, this.env.settings.url);
    const last = history.at(-1)?.delayMs ?? 0;
    return alive && last > 0 ? last : Infinity;
  }
}

export const urlTest = groupKind(
  { type: "url-test", apiType: "URLTest" },
  z.object({ tolerance: int(0, 65_535).default(0) }),
  ({ tolerance }, env) => Promise.resolve(new UrlTestGroup(tolerance, env)),
);
