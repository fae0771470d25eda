/** What a TLS stream of a descriptor is made with. */
export interface NativeStreamOptions {
  /** The stream's own, as is the object of the library. */
  readonly fd: number;
  readonly ssl: bigint;
  /** The handshake is done. Absent: it is still to be done, or under way. */
  readonly isDone?: boolean;
  /** One record at a time: TLS may be left behind, see `Bypass`. */
  readonly exact: boolean;
  /** The peer's address, for error texts and logs. */
  readonly remoteAddress?: string | undefined;
  /**
   * Makes the error for a failed handshake; called while the library's object still exists. Absent: the library's
   * reason is the error.
   */
  readonly explain?: (reason: string) => Error;
}
