/** Is the server who it should be? By its chain and name, or by a pin, as the other TLS clients here judge it. */
import { type KeyObject, X509Certificate } from "node:crypto";
import { checkServerIdentity } from "node:tls";
import { AuthError } from "#core/errors.ts";
import type { TlsClientOptions } from "#core/tls.ts";
import type { VerifiedChain } from "#platform/tls.ts";
import { verifyNameOf } from "#transport/tls/client-names.ts";
import { checkPin } from "#transport/tls/pin.ts";
import { type AlertName, TlsFault } from "./alerts.ts";
import type { ShownChain } from "./client-handshake.ts";
import type { JudgedChains } from "./judged-chains.ts";
import { keyOfLeaf, readLeaf } from "./leaf-certificate.ts";

export type JudgedBy = Pick<
  TlsClientOptions,
  "serverName" | "nameCertVerify" | "skipCertVerify" | "fingerprint"
>;

export type Verify = (chain: readonly Buffer[]) => VerifiedChain;

/**
 * The key of the server's certificate. Throws `TlsFault` for the server to hear, with an `AuthError` as its cause.
 * `judged`: of the same options; a chain in it is not judged again.
 */
export function judgeChain(
  shown: ShownChain,
  options: JudgedBy,
  verify: Verify,
  judged: JudgedChains | null = null,
): KeyObject {
  const { chain } = shown;
  const known = judged?.keyOf(chain) ?? null;
  if (known !== null) return known;
  const leaf = readLeaf(shown);
  const lastsMs = judge(chain, leaf, options, verify);
  const key = keyOfLeaf(leaf);
  judged?.keep(chain, key, lastsMs);
  return key;
}

/** For how long the same would be said of the same chain. */
function judge(chain: readonly Buffer[], leaf: X509Certificate, options: JudgedBy, verify: Verify): number {
  const { fingerprint, skipCertVerify } = options;
  const name = verifyNameOf(options);
  if (fingerprint !== null) {
    const { found } = verify(chain);
    const reason = checkPin([...chain, ...found], fingerprint, name);
    return reason === null ? shortestLife([...chain, ...found]) : refuse("bad_certificate", reason);
  }
  if (skipCertVerify) return Infinity;
  const { error, refusal, lastsMs } = verify(chain);
  if (refusal !== null) refuse(alertOf(error), `the certificate is refused: ${refusal}`);
  const fault = checkServerIdentity(name, leaf.toLegacyObject());
  if (fault !== undefined) refuse("bad_certificate", fault.message, fault);
  return lastsMs;
}

/** A pinned certificate of a chain without authority may have run out. */
function shortestLife(certificates: readonly Buffer[]): number {
  const ends = certificates.map((der) => Date.parse(new X509Certificate(der).validTo));
  return Math.max(0, Math.min(...ends) - Date.now());
}

function refuse(alert: AlertName, message: string, cause?: Error): never {
  const reason = new AuthError(message, cause === undefined ? {} : { cause });
  throw new TlsFault(alert, message, { cause: reason });
}

/** By the numbers of openssl/x509_vfy.h: no issuer that is trusted, expired, revoked. */
const NOT_TRUSTED = new Set([2, 18, 19, 20, 21, 24]);
const EXPIRED = 10;
const REVOKED = 23;

function alertOf(error: number): AlertName {
  if (error === EXPIRED) return "certificate_expired";
  if (error === REVOKED) return "certificate_revoked";
  return NOT_TRUSTED.has(error) ? "unknown_ca" : "bad_certificate";
}
