/** What stands between the socket and QUIC and changes how datagrams look; the same on both sides. */
import type { Endpoint } from "#core/endpoint.ts";

export interface PacketFilter {
  /** So many bytes longer is what goes out, where it goes as one datagram. */
  readonly overheadBytes: number;
  /** Gives `send` what goes out in place of the datagram: one or more, each lent until `send` returns. */
  seal<To>(datagram: Uint8Array, to: To, send: (datagram: Uint8Array, to: To) => void): void;
  /**
   * The datagram of QUIC, lent until the next call. Null: it is none of ours, or a part of one that is not whole yet.
   * `from` null: all come from one place.
   */
  open(datagram: Uint8Array, from: Endpoint | null): Uint8Array | null;
}
