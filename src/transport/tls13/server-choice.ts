/** What a server chose in its ServerHello or HelloRetryRequest, held against what was offered (RFC 8446 §4.1.3, §4.1.4). */
import { OlderVersion, TlsFault } from "./alerts.ts";
import { cipherSuite, type CipherSuite } from "./cipher-suites.ts";
import { EXTENSION, type Extensions } from "./extensions.ts";
import {
  decodeServerHello,
  readNumber,
  readServerShare,
  type ServerHello,
  TLS_1_3,
} from "./hello-messages.ts";
import { isKnownGroup, type KeyShare, openKeyShare } from "./key-exchange.ts";
import type { Offer, Retry } from "./offered-hello.ts";
import { WireReader } from "./wire.ts";

const IN_SERVER_HELLO = new Set<number>([
  EXTENSION.supportedVersions,
  EXTENSION.keyShare,
  EXTENSION.preSharedKey,
]);
/** A server that takes invented Encrypted ClientHello for a real one answers in kind; its answer is not read (RFC 9849 §6.2). */
const IN_RETRY = new Set<number>([
  EXTENSION.supportedVersions,
  EXTENSION.keyShare,
  EXTENSION.cookie,
  EXTENSION.encryptedClientHello,
]);

/** Throws `TlsFault`; `OlderVersion` where the server speaks TLS 1.2 and that was offered. */
export function readServerHello(body: Buffer, offer: Offer): ServerHello {
  const answer = decodeServerHello(body);
  if (answer.version !== TLS_1_3) {
    if (answer.isDowngrade)
      throw new TlsFault("illegal_parameter", "the server says that somebody in between forbade TLS 1.3");
    if (answer.version < TLS_1_3 && offer.versions.includes(answer.version)) throw new OlderVersion();
    throw new TlsFault("protocol_version", "the server chose a version that was not offered");
  }
  if (!answer.sessionId.equals(offer.sessionId))
    throw new TlsFault("illegal_parameter", "ServerHello: another session id");
  checkTypes(answer.extensions, answer.isRetry ? IN_RETRY : IN_SERVER_HELLO, offer);
  return answer;
}

function checkTypes(extensions: Extensions, allowed: ReadonlySet<number>, offer: Offer): void {
  for (const type of extensions.keys()) {
    if (allowed.has(type)) continue;
    const alert = offer.extensions.has(type) ? "illegal_parameter" : "unsupported_extension";
    throw new TlsFault(alert, `ServerHello: extension ${type}`);
  }
}

/** `retried`: the suite of a HelloRetryRequest, which must stay. */
export function chooseSuite(
  { suite: id }: ServerHello,
  offer: Offer,
  retried: CipherSuite | null,
): CipherSuite {
  const suite = offer.suites.includes(id) ? cipherSuite(id) : null;
  if (suite === null || (retried !== null && retried !== suite))
    throw new TlsFault("illegal_parameter", "ServerHello: a cipher suite that was not offered");
  return suite;
}

/** What the second ClientHello needs. Throws `TlsFault`. */
export function answerRetry({ extensions }: ServerHello, offer: Offer): Retry {
  const wanted = extensions.get(EXTENSION.keyShare);
  const cookie = extensions.get(EXTENSION.cookie) ?? null;
  if (wanted === undefined && cookie === null)
    throw new TlsFault("illegal_parameter", "HelloRetryRequest asks for nothing");
  if (cookie !== null) checkCookie(cookie);
  if (wanted === undefined) return { share: null, cookie };
  const group = readNumber(wanted, "key_share");
  if (!offer.groups.includes(group) || offer.shares.has(group))
    throw new TlsFault("illegal_parameter", "HelloRetryRequest: a group that cannot be asked for");
  if (!isKnownGroup(group))
    throw new TlsFault("handshake_failure", `the server insists on the group ${group}, which is not built`);
  return { share: openKeyShare(group), cookie };
}

function checkCookie(body: Buffer): void {
  const reader = new WireReader(body, "cookie");
  reader.vector16(1);
  reader.end();
}

/** Throws `TlsFault`. */
export function sharedSecret({ extensions }: ServerHello, shares: readonly KeyShare[]): Buffer {
  const body = extensions.get(EXTENSION.keyShare);
  if (body === undefined) throw new TlsFault("missing_extension", "ServerHello without key_share");
  const { group, share } = readServerShare(body);
  const own = shares.find((one) => one.group === group);
  if (own === undefined) throw new TlsFault("illegal_parameter", "ServerHello: a group without our share");
  return own.finish(share);
}
