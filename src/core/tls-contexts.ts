/** The TLS library's contexts of a listener, as workers get them. */

/** A context from which TLS connections are made, held once more for another thread. */
export interface SharedTlsContext {
  /** The library's, in this process. */
  readonly address: bigint;
  /** The other thread makes no connections of it any more. Those that were made of it keep it alive by themselves. */
  release(): void;
}

/** The contexts of a listener, one after the other. */
export interface TlsContextSource {
  /**
   * For new connections in one thread, whose choice of a protocol (ALPN) has the address `onAlpn` (0: that of the main thread); to be released. `isQuic`: for QUIC, where no authority
   * validates names; absent: where `onAlpn` is 0. Null: threads cannot have it.
   */
  share(onAlpn: bigint, isQuic?: boolean): SharedTlsContext | null;
  /** Calls `onChange` when `share` answers with another one from now on, until it is disposed of. */
  watch(onChange: () => void): Disposable;
}
