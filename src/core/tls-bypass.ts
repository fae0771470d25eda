/** How a protocol leaves TLS behind, when it carries what is encrypted already (xtls-rprx-vision). */
import type { Duplex } from "node:stream";

export interface RawSink {
  data(bytes: Buffer): void;
  end(): void;
}

/** The way round the TLS of one stream, one direction at a time. */
export interface Bypass {
  /**
   * To be called from within a `data` event of the secured stream: bytes behind the present record go to `sink`, raw.
   * Until then the secured stream must not be paused, because it would keep decrypted bytes back; `hold` pauses
   * instead.
   */
  leaveRead(sink: RawSink): void;
  /** Once the last secured write has been acknowledged: the stream to write raw bytes to. TLS writes nothing any more. */
  leaveWrite(): Duplex;
  /** Stops and starts the flow from below, before and after `leaveRead`. */
  hold(): void;
  release(): void;
  /** What lies below, once both directions have left TLS and nothing of it is kept here; else null. */
  readonly below: Duplex | null;
  /** Closes the connection below. */
  destroy(error?: Error): void;
}
