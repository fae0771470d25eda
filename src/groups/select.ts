/** `select`: a person picks the member, and the pick outlives reloads and restarts. */
import { z } from "zod";
import { groupKind, type SelectableGroup } from "#core/group.ts";
import type { Outbound } from "#core/outbound.ts";
import { MemberGroup } from "./member-group.ts";

class SelectGroup extends MemberGroup implements SelectableGroup {
  readonly type = "Selector";

  /** The stored member, or the first one where nothing is stored or the stored one has gone. */
  pick(): Outbound {
    return this.member(this.env.choices.selected(this.name)) ?? (this.members[0] as Outbound);
  }

  select(name: string): boolean {
    if (this.member(name) === undefined) return false;
    this.env.choices.select(this.name, name);
    return true;
  }
}

export const select = groupKind({ type: "select", apiType: "Selector" }, z.object({}), (_, env) =>
  Promise.resolve(new SelectGroup(env)),
);
