import type { Destination, Endpoint } from "#core/session.ts";
import type { RequestType } from "#dataplane/workers/shared/decision-data.ts";

/** What a client wants. */
export interface Wish {
  readonly type: RequestType;
  readonly destination: Destination;
  /** The answer of the handshake when it is connected. */
  readonly success: (local: Endpoint) => Uint8Array;
}

/** That, and who it is. */
export interface AskedConnection extends Wish {
  readonly slot: number;
  readonly listener: number;
  /** Socket address of the listening side; lent. */
  readonly local: Uint8Array;
}
