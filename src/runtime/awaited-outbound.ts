import { DialError } from "#core/errors.ts";
import { BOTH_NETWORKS, type DialContext, type Outbound } from "#core/outbound.ts";
import type { ProxyProvider } from "#core/provider.ts";
import type { Destination, Network } from "#core/session.ts";

/**
 * The only member of a group whose nodes are being fetched for the first time, in the place and by the name of COMPATIBLE:
 * what clients send must not leave by DIRECT because the nodes come a moment later. The core's own connections do, for the
 * nodes themselves may be fetched through the group.
 */
export class AwaitedOutbound implements Outbound {
  readonly name: string;
  readonly type: string;
  readonly networks: ReadonlySet<Network> = BOTH_NETWORKS;
  readonly #compatible: Outbound;
  readonly #providers: readonly ProxyProvider[];

  constructor(compatible: Outbound, providers: readonly ProxyProvider[]) {
    this.name = compatible.name;
    this.type = compatible.type;
    this.#compatible = compatible;
    this.#providers = providers;
  }

  get inert(): string {
    return `${this.awaited} is being fetched for the first time`;
  }

  /** `proxy provider a, b`. */
  get awaited(): string {
    const names = this.#providers.filter(({ isAwaited }) => isAwaited).map(({ name }) => name);
    return `proxy provider ${names.join(", ")}`;
  }

  async connect(destination: Destination, context: DialContext) {
    this.#refuseClients(context);
    return this.#compatible.connect(destination, context);
  }

  async associate(destination: Destination, context: DialContext) {
    this.#refuseClients(context);
    return this.#compatible.associate(destination, context);
  }

  /** Holds nothing. */
  async [Symbol.asyncDispose](): Promise<void> {}

  #refuseClients({ metadata }: DialContext): void {
    if (metadata !== null) throw new DialError("failed", this.inert);
  }
}

/** What a group has where none of its members is left: `fallback`, or while that is not known yet who stands in for it. */
export function membersIfNone(
  fallback: Outbound,
  providers: readonly ProxyProvider[],
): () => readonly Outbound[] {
  const none = [fallback];
  if (fallback.type !== "Compatible") return () => none; // the file says where to
  const awaited = [new AwaitedOutbound(fallback, providers)];
  return () => (providers.some(({ isAwaited }) => isAwaited) ? awaited : none);
}
