/** What a client says first, as the handshake needs it; how it looks on the wire is a template's business. */
import { decodeClientHello, readKeyShares } from "./hello-messages.ts";
import { EXTENSION, readProtocols } from "./extensions.ts";
import type { KeyShare } from "./key-exchange.ts";
import type { Session } from "./sessions.ts";
import { WireReader } from "./wire.ts";

/** What a HelloRetryRequest asks for. */
export interface Retry {
  /** Replaces all shares; null: they stay. */
  readonly share: KeyShare | null;
  /** To be sent back; null: none. */
  readonly cookie: Buffer | null;
  /** The server chose a hash of another length than that of the session, which is offered no more. */
  readonly dropsSession?: boolean;
}

export interface ClientHelloMessage {
  /** Complete, with its header of four bytes. */
  readonly message: Buffer;
  /** The private halves of the key shares in it. */
  readonly shares: readonly KeyShare[];
  /** The session that is shown at its end, whose binder is still to be written; absent: none. */
  readonly session?: Session;
  /** The same hello with what the server asked for (RFC 8446 §4.1.2). */
  again(retry: Retry): ClientHelloMessage;
  /** The hello that is sealed in it (Encrypted ClientHello); absent: none. */
  readonly hidden?: HiddenHello;
}

/** Has the same key shares as the hello around it. */
export interface HiddenHello {
  /** Complete, with its header of four bytes. */
  readonly message: Buffer;
  readonly random: Buffer;
  /** Both hellos with what the server asked for, where it answered the hidden one. */
  again(retry: Retry): ClientHelloMessage;
}

/** What the server may choose from, read from the message itself. */
export interface Offer {
  readonly random: Buffer;
  readonly sessionId: Buffer;
  readonly suites: readonly number[];
  readonly groups: readonly number[];
  /** Groups that have a share already. */
  readonly shares: ReadonlyMap<number, Buffer>;
  readonly extensions: ReadonlySet<number>;
  readonly versions: readonly number[];
  readonly protocols: readonly string[];
  readonly compressions: readonly number[];
}

/** Of a message that was made here. */
export function readOffer(message: Buffer): Offer {
  const { random, sessionId, suites, extensions } = decodeClientHello(message.subarray(4));
  const protocols = extensions.get(EXTENSION.alpn);
  const shares = extensions.get(EXTENSION.keyShare);
  return {
    random,
    sessionId,
    suites,
    groups: numbers(extensions.get(EXTENSION.supportedGroups), "numbers16"),
    shares: shares === undefined ? new Map() : readKeyShares(shares),
    extensions: new Set(extensions.keys()),
    versions: numbers(extensions.get(EXTENSION.supportedVersions), "numbers8"),
    protocols: protocols === undefined ? [] : readProtocols(protocols),
    compressions: numbers(extensions.get(EXTENSION.compressCertificate), "numbers8"),
  };
}

function numbers(body: Buffer | undefined, form: "numbers8" | "numbers16"): number[] {
  return body === undefined ? [] : new WireReader(body, "ClientHello")[form]();
}
