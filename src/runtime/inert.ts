import { DialError, messageOf } from "#core/errors.ts";
import { BOTH_NETWORKS, type Outbound } from "#core/outbound.ts";
import type { Destination, Network } from "#core/session.ts";

/**
 * Stands for a node that this build cannot open: it keeps its place in groups, so that the rest of the profile works,
 * and every dial says why it fails.
 */
export class InertOutbound implements Outbound {
  readonly name: string;
  readonly type: string;
  readonly networks: ReadonlySet<Network> = BOTH_NETWORKS;
  readonly #why: string;

  constructor(name: string, type: string, why: string) {
    this.name = name;
    this.type = type;
    this.#why = why;
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
    return Promise.reject(new DialError("unsupported", `proxy ${this.name}: ${this.#why}`));
  }
}

/** Says of each group that has nothing else that it leads nowhere. */
export function hopelessGroups(
  groups: readonly { readonly name: string; readonly members: readonly Outbound[] }[],
): readonly string[] {
  return groups
    .filter(({ members }) => members.every((member) => member instanceof InertOutbound))
    .map(({ name }) => `group ${name}: none of its members can be dialled in this build`);
}

/** Why a node cannot be opened, without its name in front. */
export function reasonOf(error: unknown, name: string): string {
  return messageOf(error).replace(`proxy ${name}: `, "");
}
