import type { Config } from "#config/config.ts";
import { DialError, messageOf } from "#core/errors.ts";
import type { SafeFiles } from "#core/files.ts";
import { SILENT } from "#core/log.ts";
import { BOTH_NETWORKS, type Dialer, type Outbound } from "#core/outbound.ts";
import type { Resolver } from "#core/resolver.ts";
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

const NOBODY: Dialer = {
  connect: () => Promise.reject(new DialError("unsupported", "nothing is dialled while a file is checked")),
  associate: () => Promise.reject(new DialError("unsupported", "nothing is dialled while a file is checked")),
};
const NO_NAMES: Resolver = {
  lookup: (host) => Promise.reject(new DialError("resolve", `${host} is not looked up`)),
};

/** Opens every node once, touching nothing outside, to tell which could not be used: what `-t` says of them. */
export async function nodeFaults({ proxies }: Config, files: SafeFiles): Promise<readonly string[]> {
  const faults: string[] = [];
  for (const { name, protocol, options } of proxies) {
    try {
      const env = { name, dialer: NOBODY, resolver: NO_NAMES, files, log: SILENT, nowMs: Date.now };
      const node = await protocol?.outbound?.open(options as never, env);
      await node?.[Symbol.asyncDispose]();
    } catch (error) {
      faults.push(`proxy ${name}: ${reasonOf(error, name)}; the node stays and cannot be dialled`);
    }
  }
  return faults;
}

/** Why a node cannot be opened, without its name in front. */
export function reasonOf(error: unknown, name: string): string {
  return messageOf(error).replace(`proxy ${name}: `, "");
}
