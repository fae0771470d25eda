import type { Metadata, StreamSession } from "./session.ts";

/** The name that a client's first bytes gave away. */
export interface Sniffed {
  /** Lower case, with a dot in it, no address literal. */
  readonly host: string;
  /** Dial this name in place of what the client asked for; false: only rules read it. */
  readonly overridesDestination: boolean;
}

/** Looks at what clients send first. Never throws and never rejects: what is not found out stays unknown. */
export interface Sniffer {
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
