/** What all groups share: they are outbounds that hand everything to the member they pick. */
import type { DialError } from "#core/errors.ts";
import type { GroupEnv } from "#core/group.ts";
import { TCP_ONLY, type DialContext, type Group, type Outbound } from "#core/outbound.ts";
import type { Destination, Metadata, Network } from "#core/session.ts";

export abstract class MemberGroup implements Group {
  abstract readonly type: string;
  readonly name: string;
  protected readonly env: GroupEnv;

  constructor(env: GroupEnv) {
    this.env = env;
    this.name = env.name;
  }

  abstract pick(metadata: Metadata | null): Outbound;

  get members(): readonly Outbound[] {
    return this.env.members();
  }

  get networks(): ReadonlySet<Network> {
    return this.disablesUdp ? TCP_ONLY : this.pick(null).networks;
  }

  get disablesUdp(): boolean {
    return this.env.settings.disableUdp;
  }

  /** How a dial through this group went; kinds that test their members react to failures. */
  dialled(_failure: DialError | null): void {}

  connect(destination: Destination, context: DialContext) {
    return this.pick(context.metadata).connect(destination, context);
  }

  associate(destination: Destination, context: DialContext) {
    return this.pick(context.metadata).associate(destination, context);
  }

  /** The members are owned by the builder of the group. */
  async [Symbol.asyncDispose](): Promise<void> {}

  protected member(name: string | null): Outbound | undefined {
    return name === null ? undefined : this.members.find((member) => member.name === name);
  }
}
