/** The TLS inside QUIC (RFC 9001 §4), behind an interface that more than one engine can fill. */
import type { QuicTlsEvents, TlsLevel } from "#platform/quic.ts";

export { TlsAlert, type QuicTlsEvents, type TlsLevel } from "#platform/quic.ts";

export const TLS_INITIAL: TlsLevel = 0;
export const TLS_EARLY: TlsLevel = 1;
export const TLS_HANDSHAKE: TlsLevel = 2;
export const TLS_APPLICATION: TlsLevel = 3;

/** Of one connection. What it says and the secrets that it makes go to the events that it was opened with. */
export interface QuicTls extends Disposable {
  /** Both sides have finished; the peer is not yet known to be the right one. */
  readonly isDone: boolean;
  /** Says the first bytes of the dialling side. Throws `TlsAlert`. */
  begin(): void;
  /** Handshake bytes of the peer, in order. Throws `TlsAlert`. Nothing happens once it is disposed of. */
  give(level: TlsLevel, bytes: Uint8Array): void;
  /** Once it is done: why the peer will not do; null: it will. */
  refusal(): Error | null;
  /** It goes on with the session of an earlier connection: the peer has shown no certificate. */
  readonly isResumed: boolean;
  /** Of the dialling side: the server's parameters of the connection whose session is offered; null: none is. */
  readonly remembered: Uint8Array | null;
  /** Once it is done: what was said with early keys was understood. */
  readonly isEarlyAccepted: boolean;
  /** What both sides agreed on; null: nothing. */
  alpn(): string | null;
  /** `size` bytes that only both sides of this connection know (RFC 8446 §7.5). Throws where it is not done. */
  exportKey(label: Uint8Array, context: Uint8Array, size: number): Buffer;
  /** Why a handshake failed, in words for the user. */
  explain(failure: Error): Error;
}

/** In place of one that was let go of: what it was asked for is known, or is not to be had any more. */
export const RELEASED_TLS: QuicTls = {
  isDone: true,
  begin() {},
  give() {},
  refusal: () => null,
  isResumed: false,
  remembered: null,
  isEarlyAccepted: false,
  alpn: () => null,
  exportKey() {
    throw new Error("no key can be exported: the TLS of this connection was let go of");
  },
  explain: (failure) => failure,
  [Symbol.dispose]() {},
};

/** Makes the TLS of a connection. `parameters`: our encoded transport parameters. */
export type OpenQuicTls = (parameters: Uint8Array, events: QuicTlsEvents) => QuicTls;
