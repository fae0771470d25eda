/** `fallback`: the first member that is alive, in the order of the file. */
import * as z from "zod";
import { groupKind } from "#core/group.ts";
import type { Outbound } from "#core/outbound.ts";
import { TestedGroup } from "./tested-group.ts";
import { itemAt } from "#lib/at.ts";

class FallbackGroup extends TestedGroup {
  readonly type = "Fallback";

  protected best(): Outbound {
    const members = this.members;
    return members.find((member) => this.isAlive(member)) ?? itemAt(members, 0);
  }
}

export const fallback = groupKind({ type: "fallback", apiType: "Fallback" }, z.object({}), (_, env) =>
  Promise.resolve(new FallbackGroup(env)),
);
