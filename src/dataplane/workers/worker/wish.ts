import type { Destination, Endpoint } from "#core/session.ts";

/** What a client wants. */
export interface Wish {
  /** API spelling, as in `InboundInfo.type`. */
  readonly type: string;
  readonly destination: Destination;
  /** The answer of the handshake when it is connected. */
  readonly success: (local: Endpoint) => Uint8Array;
}

/** Of clients that are no users. */
export const NO_USER = -1;

/** That, and who it is. */
export interface AskedConnection extends Wish {
  /** An index of the listener's users, or `NO_USER`. */
  readonly user: number;
  readonly slot: number;
  readonly listener: number;
  /** Socket address of the listening side; lent. */
  readonly local: Uint8Array;
}
