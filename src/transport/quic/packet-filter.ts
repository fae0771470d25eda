/** What stands between the socket and QUIC and changes how datagrams look; the same on both sides. */
export interface PacketFilter {
  /** So many bytes longer is what goes out. */
  readonly overheadBytes: number;
  /** Its answer is lent until the next call. */
  seal(datagram: Uint8Array): Uint8Array;
  /** Likewise. Null: it is none of ours. */
  open(datagram: Uint8Array): Uint8Array | null;
}
