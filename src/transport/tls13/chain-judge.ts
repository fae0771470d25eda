/** Is the server who it should be? By its chain and name, or by a pin, as the other TLS clients here judge it. */
import { checkServerIdentity } from "node:tls";
import { AuthError } from "#core/errors.ts";
import type { TlsClientOptions } from "#core/tls.ts";
import type { VerifiedChain } from "#platform/tls.ts";
import { verifyNameOf } from "#transport/tls/client-options.ts";
import { checkPin } from "#transport/tls/pin.ts";
import { type AlertName, TlsFault } from "./alerts.ts";
import type { ShownChain } from "./client-handshake.ts";

export type JudgedBy = Pick<
  TlsClientOptions,
  "serverName" | "nameCertVerify" | "skipCertVerify" | "fingerprint"
>;

/** Throws `TlsFault` for the server to hear, with an `AuthError` as its cause. */
export function judgeChain(
  { chain, leaf }: ShownChain,
  options: JudgedBy,
  verify: (chain: readonly Buffer[]) => VerifiedChain,
): void {
  const { fingerprint, skipCertVerify } = options;
  const name = verifyNameOf(options);
  if (fingerprint !== null) {
    const reason = checkPin([...chain, ...verify(chain).found], fingerprint, name);
    return reason === null ? undefined : refuse("bad_certificate", reason);
  }
  if (skipCertVerify) return;
  const { error, refusal } = verify(chain);
  if (refusal !== null) refuse(alertOf(error), `the certificate is refused: ${refusal}`);
  const fault = checkServerIdentity(name, leaf.toLegacyObject());
  if (fault !== undefined) refuse("bad_certificate", fault.message, fault);
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
