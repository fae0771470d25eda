import type { TLSSocket } from "node:tls";
import { createHash, X509Certificate } from "node:crypto";
import { checkServerIdentity } from "node:tls";

/** More certificates than a sane chain has; a longer one is not walked. */
const MAX_CHAIN = 10;

/**
 * Pinning replaces chain verification: a leaf with this SHA-256 is taken as it is; an authority with it becomes the
 * only root, and the chain below it, the dates and the name are checked. Answers null, or why the peer is refused.
 */
export function checkPin(socket: TLSSocket, pin: string, verifyName: string): string | null {
  const chain = presentedChain(socket);
  const [leaf] = chain;
  if (leaf === undefined) return "the server showed no certificate";
  if (digestOf(leaf) === pin) return null;
  const at = chain.findIndex((certificate) => digestOf(certificate) === pin);
  if (at < 0) return `no certificate of the server has the fingerprint ${pin}`;
  return checkChain(chain.slice(0, at + 1), verifyName);
}

function digestOf(certificate: X509Certificate): string {
  return createHash("sha256").update(certificate.raw).digest("hex");
}

function presentedChain(socket: TLSSocket): X509Certificate[] {
  const chain: X509Certificate[] = [];
  let at = socket.getPeerCertificate(true);
  while (at?.raw !== undefined && chain.length < MAX_CHAIN) {
    chain.push(new X509Certificate(at.raw));
    if (at.issuerCertificate === undefined || at.issuerCertificate === at) break;
    at = at.issuerCertificate;
  }
  return chain;
}

function checkChain(chain: readonly X509Certificate[], verifyName: string): string | null {
  const now = Date.now();
  for (const [index, certificate] of chain.entries()) {
    if (now < Date.parse(certificate.validFrom) || now > Date.parse(certificate.validTo))
      return "a certificate below the pinned authority is outside its dates";
    const issuer = chain[index + 1];
    if (issuer === undefined) continue;
    if (!issuer.ca || !certificate.checkIssued(issuer) || !certificate.verify(issuer.publicKey))
      return "the pinned authority did not sign this chain";
  }
  const leaf = (chain[0] as X509Certificate).toLegacyObject();
  return checkServerIdentity(verifyName, leaf)?.message ?? null;
}
