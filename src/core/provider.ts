import type { Outbound } from "./outbound.ts";

/** A list of nodes that comes from elsewhere and changes while the program runs. */
export interface ProxyProvider {
  readonly name: string;
  /** The same array until the contents change. */
  nodes(): readonly Outbound[];
  /** It is fetched for the first time, and whether there are nodes will show. False for good once that has succeeded or failed. */
  readonly isAwaited: boolean;
  /** Its health check's URL; null where it has none. */
  readonly testUrl: string | null;
}
