/** Groups that choose by test results, unless a person pins a member. */
import type { DialError } from "#core/errors.ts";
import type { GroupEnv, SelectableGroup } from "#core/group.ts";
import type { Outbound } from "#core/outbound.ts";
import type { Metadata } from "#core/session.ts";
import { HealthCheck } from "./health-check.ts";
import { MemberGroup } from "./member-group.ts";

export abstract class TestedGroup extends MemberGroup implements SelectableGroup {
  readonly isSteady = true;
  protected readonly health: HealthCheck;

  constructor(env: GroupEnv) {
    super(env);
    this.health = new HealthCheck(env);
  }

  /** The member that is used while none is pinned, or the pinned one is dead. */
  protected abstract best(): Outbound;

  pick(metadata: Metadata | null): Outbound {
    if (metadata !== null) this.used();
    const pinned = this.member(this.pinned);
    return pinned !== undefined && this.isAlive(pinned) ? pinned : this.best();
  }

  used(): void {
    this.health.touch();
  }

  get pinned(): string | null {
    return this.env.choices.selected(this.name);
  }

  select(name: string): boolean {
    if (this.member(name) === undefined) return false;
    this.env.choices.select(this.name, name);
    return true;
  }

  unpin(): void {
    this.env.choices.unselect(this.name);
  }

  override dialled(failure: DialError | null): void {
    this.health.dialled(failure);
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await this.health[Symbol.asyncDispose]();
  }

  protected isAlive(member: Outbound): boolean {
    return this.env.health.delays.for(member.name, this.env.settings.url).alive;
  }
}
