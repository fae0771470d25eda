/** `select`: a person picks the member, and the pick outlives reloads and restarts. */
import { z } from "zod";
import type { GroupEnv, GroupKind, SelectableGroup } from "#core/group.ts";
import type { DialContext, Outbound } from "#core/outbound.ts";
import type { Destination, Network } from "#core/session.ts";

class SelectGroup implements SelectableGroup {
  readonly type = "Selector";
  readonly name: string;
  readonly members: readonly Outbound[];
  readonly #env: GroupEnv;
  #picked: Outbound;

  constructor(env: GroupEnv) {
    this.#env = env;
    this.name = env.name;
    this.members = env.members;
    const stored = env.choices.selected(env.name);
    this.#picked = this.#member(stored) ?? (env.members[0] as Outbound);
  }

  #member(name: string | null): Outbound | undefined {
    return name === null ? undefined : this.members.find((member) => member.name === name);
  }

  get networks(): ReadonlySet<Network> {
    return this.#picked.networks;
  }

  pick(): Outbound {
    return this.#picked;
  }

  select(name: string): boolean {
    const member = this.#member(name);
    if (member === undefined) return false;
    this.#picked = member;
    this.#env.choices.select(this.name, name);
    return true;
  }

  connect(destination: Destination, context: DialContext) {
    return this.#picked.connect(destination, context);
  }

  associate(destination: Destination, context: DialContext) {
    return this.#picked.associate(destination, context);
  }

  /** The members belong to whoever built them. */
  async [Symbol.asyncDispose](): Promise<void> {}
}

/** The first member where nothing is stored or the stored one has gone. */
export const select: GroupKind = {
  type: "select",
  apiType: "Selector",
  schema: z.object({}),
  open: (_options: never, env: GroupEnv) => Promise.resolve(new SelectGroup(env)),
};
