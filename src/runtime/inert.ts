import { DEFAULT_GROUP_SETTINGS, type GroupConfig } from "#config/config.ts";
import { DialError, messageOf } from "#core/errors.ts";
import { BOTH_NETWORKS, type Group, type Outbound } from "#core/outbound.ts";
import type { Destination, Network } from "#core/session.ts";
import { AwaitedOutbound } from "./awaited-outbound.ts";

/**
 * Takes the place of a node that this build cannot open: it stays a member of its groups, so that the other parts of
 * the profile work, and every dial says why it fails.
 */
export class InertOutbound implements Outbound {
  readonly name: string;
  readonly type: string;
  readonly networks: ReadonlySet<Network> = BOTH_NETWORKS;
  readonly inert: string;

  constructor(name: string, type: string, why: string) {
    this.name = name;
    this.type = type;
    this.inert = why;
  }

  connect(_destination: Destination): Promise<never> {
    return this.#refuse();
  }

  associate(_destination: Destination): Promise<never> {
    return this.#refuse();
  }

  /** Holds nothing. */
  async [Symbol.asyncDispose](): Promise<void> {}

  #refuse(): Promise<never> {
    return Promise.reject(new DialError("unsupported", `proxy ${this.name}: ${this.inert}`));
  }
}

const COMPATIBLE = "COMPATIBLE, which is DIRECT";

/** Why a group leads nowhere, or elsewhere than its file says; null: it leads to its members. */
export function groupFault({ members, type }: Group, config: GroupConfig): string | null {
  const [only] = members;
  if (only instanceof AwaitedOutbound)
    return `it has no members until ${only.awaited} is there: connections are refused while it is fetched, and if that fails go to ${COMPATIBLE} (empty-fallback chooses)`;
  if (type === "Relay") {
    const dead = members.find(({ inert }) => inert !== undefined);
    if (dead !== undefined) return `its member ${dead.name} cannot be dialled in this build`;
  }
  if (members.every(({ inert }) => inert !== undefined))
    return "none of its members can be dialled in this build";
  const { emptyFallback, included } = config.settings ?? DEFAULT_GROUP_SETTINGS;
  const isListed = config.members.includes(emptyFallback) || included.includes(emptyFallback);
  if (members.length > 1 || members[0]?.name !== emptyFallback || isListed) return null;
  const way = emptyFallback === "COMPATIBLE" ? COMPATIBLE : emptyFallback;
  return `it has no members, its traffic goes to ${way} (empty-fallback chooses)`;
}

/** Why a node cannot be opened, without its name in front. */
export function reasonOf(error: unknown, name: string): string {
  return messageOf(error).replace(`proxy ${name}: `, "");
}
