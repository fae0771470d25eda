/** The TLS handshake inside QUIC (RFC 9001 §4): its bytes, the keys that it makes, the parameters that it carries. */
import type { PacketCipher, QuicCiphers } from "#platform/quic.ts";
import { CRYPTO_ERROR, QuicFault, TRANSPORT_PARAMETER_ERROR } from "./fault.ts";
import type { ApplicationKeys } from "./protection/application-keys.ts";
import { AES_128_GCM_SHA256, deriveKeys, initialSecret } from "./protection/key-schedule.ts";
import { APPLICATION_SPACE, HANDSHAKE_SPACE, INITIAL_SPACE } from "./recovery/packet-space.ts";
import type { PacketSpace, SpaceId } from "./recovery/packet-space.ts";
import {
  type OpenQuicTls,
  type QuicTls,
  RELEASED_TLS,
  TLS_APPLICATION,
  TLS_EARLY,
  TLS_HANDSHAKE,
  TLS_INITIAL,
  TlsAlert,
  type TlsLevel,
} from "./tls.ts";
import { decodeTransportParameters, type TransportParameters } from "./wire/transport-parameters.ts";

const BAD_CERTIFICATE = 42;
const MISSING_EXTENSION = 109;
const NO_APPLICATION_PROTOCOL = 120;

const LEVEL_OF: Readonly<Record<SpaceId, TlsLevel>> = {
  [INITIAL_SPACE]: TLS_INITIAL,
  [HANDSHAKE_SPACE]: TLS_HANDSHAKE,
  [APPLICATION_SPACE]: TLS_APPLICATION,
};

/** What the headers said, which the parameters must confirm (RFC 9000 §7.3). */
export interface SaidByHeaders {
  readonly initialSource: Uint8Array;
  /** Of the accepting side; null: we are that. */
  readonly original: Uint8Array | null;
  readonly retrySource: Uint8Array | null;
}

export interface HandshakeOptions {
  readonly isServer: boolean;
  readonly ciphers: QuicCiphers;
  readonly openTls: OpenQuicTls;
  readonly spaces: readonly [PacketSpace, PacketSpace, PacketSpace];
  readonly keys: ApplicationKeys;
}

export class Handshake implements Disposable {
  tls: QuicTls;
  /** Not authenticated before the handshake is done; null: not there yet. */
  peer: TransportParameters | null = null;
  /** It went on with an earlier session. */
  isResumed = false;
  /** There are keys for what is said before the handshake is done (0-RTT). */
  hasEarlyKeys = false;
  isEarlyAccepted = false;
  readonly #options: HandshakeOptions;

  /** `parameters`: what we say of ourselves. */
  constructor(options: HandshakeOptions, parameters: Uint8Array) {
    this.#options = options;
    this.tls = options.openTls(parameters, {
      send: (level, bytes) => {
        const space = options.spaces[spaceOf(level)];
        if (!space.isDropped) space.crypto.write(bytes);
      },
      secret: (level, forWriting, suite, secret) => this.#setSecret(level, forWriting, suite, secret),
      peerParameters: (bytes) => {
        this.peer = decodeTransportParameters(bytes, options.isServer ? "client" : "server");
      },
    });
  }

  /** Of Initial packets, from the destination of the client's first one, or the source of a Retry. */
  setInitialKeys(destination: Uint8Array): void {
    const { ciphers, isServer, spaces } = this.#options;
    const keysOf = (side: "client" | "server") =>
      deriveKeys(AES_128_GCM_SHA256, initialSecret(destination, side));
    const [space] = spaces;
    space.seals?.[Symbol.dispose]();
    space.opens?.[Symbol.dispose]();
    space.seals = ciphers.make(AES_128_GCM_SHA256, keysOf(isServer ? "server" : "client"), true);
    space.opens = ciphers.make(AES_128_GCM_SHA256, keysOf(isServer ? "client" : "server"), false);
  }

  #setSecret(level: TlsLevel, forWriting: boolean, suite: number, secret: Uint8Array): void {
    const { ciphers, keys, spaces } = this.#options;
    if (level === TLS_INITIAL) return;
    const space = spaces[spaceOf(level)];
    if (level === TLS_EARLY) this.hasEarlyKeys = true;
    if (level === TLS_APPLICATION) {
      keys.set(forWriting, suite, secret);
      if (forWriting) replaceSeals(space, keys.seals);
      else replaceOpens(space, keys.opens);
    } else if (forWriting) space.seals = ciphers.make(suite, deriveKeys(suite, secret), true);
    else space.opens = ciphers.make(suite, deriveKeys(suite, secret), false);
    secret.fill(0);
  }

  begin(): void {
    this.#guard(() => this.tls.begin());
  }

  /** A CRYPTO frame. Throws `QuicFault`. */
  read(space: PacketSpace, offset: number, bytes: Uint8Array): void {
    if (space.isDropped) return;
    const level = LEVEL_OF[space.id];
    space.crypto.read(offset, bytes, (piece) => this.#guard(() => this.tls.give(level, piece)));
  }

  #guard(run: () => void): void {
    try {
      run();
    } catch (error) {
      if (!(error instanceof TlsAlert)) throw error;
      throw new HandshakeFailed(CRYPTO_ERROR + error.alert, this.tls.explain(error));
    }
  }

  /** The keys are made, and nothing more is asked of TLS; what the peer still says of it is not read. */
  release(): void {
    this[Symbol.dispose]();
    this.tls = RELEASED_TLS;
  }

  /** Once both sides have finished: the peer's parameters. Throws `QuicFault` where the peer is not the right one. */
  finish(said: SaidByHeaders): TransportParameters {
    this.isResumed = this.tls.isResumed;
    this.isEarlyAccepted = this.hasEarlyKeys && this.tls.isEarlyAccepted;
    const refusal = this.tls.refusal();
    if (refusal !== null) throw new HandshakeFailed(CRYPTO_ERROR + BAD_CERTIFICATE, refusal);
    // RFC 9001 §8.1
    if (!this.#options.isServer && this.tls.alpn() === null)
      throw new QuicFault(CRYPTO_ERROR + NO_APPLICATION_PROTOCOL, "the server has chosen no protocol (ALPN)");
    const { peer } = this;
    if (peer === null) throw new QuicFault(CRYPTO_ERROR + MISSING_EXTENSION, "no transport parameters");
    const isConfirmed =
      isSame(peer.initialSource, said.initialSource) &&
      (said.original === null ||
        (isSame(peer.originalDestination, said.original) && isSame(peer.retrySource, said.retrySource)));
    if (!isConfirmed)
      throw new QuicFault(TRANSPORT_PARAMETER_ERROR, "connection ids that differ from those of the packets");
    return peer;
  }

  [Symbol.dispose](): void {
    this.tls[Symbol.dispose]();
  }
}

/** The peer is not the right one, or TLS failed; `cause` says it to the user. */
export class HandshakeFailed extends QuicFault {
  readonly reason: Error;
  constructor(transportCode: number, reason: Error) {
    super(transportCode, reason.message);
    this.reason = reason;
  }
}

/** Those of 0-RTT, where there were any, are over. */
function replaceSeals(space: PacketSpace, seals: PacketCipher | null): void {
  space.seals?.[Symbol.dispose]();
  space.seals = seals;
}

function replaceOpens(space: PacketSpace, opens: PacketCipher | null): void {
  space.opens?.[Symbol.dispose]();
  space.opens = opens;
}

function spaceOf(level: TlsLevel): SpaceId {
  return level === TLS_INITIAL
    ? INITIAL_SPACE
    : level === TLS_HANDSHAKE
      ? HANDSHAKE_SPACE
      : APPLICATION_SPACE;
}

function isSame(one: Uint8Array | null, other: Uint8Array | null): boolean {
  if (one === null || other === null) return one === other;
  return Buffer.compare(one, other) === 0;
}
