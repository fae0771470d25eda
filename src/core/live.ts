import type { Decision } from "./router.ts";
import type { Metadata } from "./session.ts";

/** An open connection as the API shows it. The numbers are read when their getters are. */
export interface LiveConnection {
  readonly metadata: Metadata;
  /** Null until the router has decided. */
  readonly decision: Decision | null;
  readonly uploadBytes: number;
  readonly downloadBytes: number;
  readonly startedAtMs: number;
  /** Address of the outbound's peer, empty where it is not known. */
  readonly remoteAddress: string;
  /** Ends it as a fault would; harmless when it has ended. */
  close(): void;
}

/** All of them. Iterating copies nothing; one that opens or closes meanwhile may or may not be seen. */
export interface LiveConnections extends Iterable<LiveConnection> {
  readonly size: number;
  /** Since the start of the process; never decrease, whatever closes. */
  readonly uploadTotalBytes: number;
  readonly downloadTotalBytes: number;
  /** False where there is none with this id. */
  close(id: string): boolean;
  /** Closes those that the predicate picks (all of them without one) and answers with how many. */
  closeAll(which?: (connection: LiveConnection) => boolean): number;
}
