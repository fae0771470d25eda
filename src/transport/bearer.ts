/** What is known of a connection that carries many requests. */
import type { Duplex } from "node:stream";
import type { UnauthenticatedClient } from "#core/inbound.ts";
import type { Endpoint } from "#core/session.ts";
import { LOOPBACK_V4 } from "#net/address/ip.ts";

export interface Bearer {
  readonly source: Endpoint;
  /** Its client, until that has shown who it is; null: it does not count. */
  readonly unknown: UnauthenticatedClient | null;
}

/** Takes a tunnel, which has an 'error' listener. `onAuthenticated` is to be called when its client has shown who it is. */
export type OnTunnel = (tunnel: Duplex, onAuthenticated: () => void) => void;

/** One that does not count. */
export const NO_BEARER: Bearer = { source: { ip: LOOPBACK_V4, port: 0 }, unknown: null };

/** What such a connection makes us hold beside its requests. Measured, rounded up, as is the next one. */
export const BEARER_BYTES = 16 * 1024;
/** What a request makes us hold while it is open: its fields, its streams, and a first window of a body that no one reads. */
export const REQUEST_BYTES = 80 * 1024;
