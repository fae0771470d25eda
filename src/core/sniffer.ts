import { isInRanges, type Range } from "./ranges.ts";
import type { Destination, Metadata, StreamSession } from "./session.ts";

/** The name that a client's first bytes gave away. */
export interface Sniffed {
  /** Lower case, with a dot in it, no address literal. */
  readonly host: string;
  /** Dial this name in place of what the client asked for; false: only rules read it. */
  readonly overridesDestination: boolean;
}

/** Where streams may be sniffed, for threads that have no sniffer: nothing else ever is. */
export interface SniffedStreams {
  readonly ports: readonly Range[];
  /** Destinations without a name. */
  readonly addresses: boolean;
  /** At least some of those with one. */
  readonly names: boolean;
}

export const mayBeSniffed = (sniffed: SniffedStreams, { host, port }: Destination): boolean =>
  (host === null ? sniffed.addresses : sniffed.names) && isInRanges(sniffed.ports, port);

/** Looks at what clients send first. Never throws and never rejects: what is not found out stays unknown. */
export interface Sniffer {
  readonly streams: SniffedStreams;
  /** Is this connection to be sniffed under the present settings? */
  wants(metadata: Metadata): boolean;
  /**
   * Null: this connection is not sniffed. Else settles within a second; all bytes that were read are back in the stream
   * then. A client that waits for a reply before it sends gets one (`session.reply(null)`).
   */
  readStream(session: StreamSession, signal: AbortSignal): Promise<Sniffed | null> | null;
  /** Null: datagrams to this destination are not looked at. */
  watchDatagrams(metadata: Metadata, signal: AbortSignal): DatagramWatch | null;
}

/** Looks at the first datagrams to one destination. */
export interface DatagramWatch {
  /** Does nothing once there is a result. */
  feed(payload: Uint8Array): void;
  /** Settles at the first datagram in most cases; soon, where one says that more belong to it. */
  readonly result: Promise<Sniffed | null>;
}
