/** `url-test`: the member with the lowest delay among those that are alive. */
import * as z from "zod";
import { int, leftOut } from "#core/fields.ts";
import { groupKind, type GroupEnv } from "#core/group.ts";
import type { Outbound } from "#core/outbound.ts";
import { TestedGroup } from "./tested-group.ts";
import { itemAt } from "#lib/at.ts";

export class UrlTestGroup extends TestedGroup {
  readonly type = "URLTest";
  readonly #toleranceMs: number;
  #current: Outbound | null = null;
  /** Of the delays that the choice rests on. */
  #revision = -1;

  constructor(toleranceMs: number, env: GroupEnv) {
    super(env);
    this.#toleranceMs = toleranceMs;
  }

  /**
   * Looked for again where a result has come in since, from any test. Not in the middle of the group's own tests, which
   * tell of one member after the other: then a measured choice stands until all are through.
   */
  protected best(): Outbound {
    const { revision } = this.env.health.delays;
    const current = this.member(this.#current?.name ?? null);
    if (current !== undefined && revision === this.#revision) return current;
    if (current !== undefined && this.health.isRunning && this.#delayMs(current) < Infinity) return current;
    this.#revision = revision;
    this.#current = this.#choose(current);
    return this.#current;
  }

  /** Stays with the current member unless it is dead, or slower than the best by more than the tolerance. */
  #choose(current: Outbound | undefined): Outbound {
    let best: Outbound | null = null;
    let bestMs = Infinity;
    for (const member of this.members) {
      const delayMs = this.#delayMs(member);
      if (delayMs < bestMs) [best, bestMs] = [member, delayMs];
    }
    if (best === null) return current ?? itemAt(this.members, 0);
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
  z.object({ tolerance: leftOut(int(0, 65_535)).default(0) }),
  ({ tolerance }, env) => Promise.resolve(new UrlTestGroup(tolerance, env)),
);
