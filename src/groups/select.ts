/** `select`: a person picks the member, and the pick outlives reloads and restarts. */
import * as z from "zod";
import { groupKind, type SelectableGroup } from "#core/group.ts";
import type { Outbound } from "#core/outbound.ts";
import { MemberGroup } from "./member-group.ts";
import { itemAt } from "#lib/at.ts";

class SelectGroup extends MemberGroup implements SelectableGroup {
  readonly type = "Selector";
  readonly isSteady = true;

  /** The stored member; where nothing is stored, or it has gone, that of `default-selected`, or else the first. */
  pick(): Outbound {
    const { choices, settings } = this.env;
    const chosen = this.member(choices.selected(this.name)) ?? this.member(settings.defaultSelected);
    return chosen ?? itemAt(this.members, 0);
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
